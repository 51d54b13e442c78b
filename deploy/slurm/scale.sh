#!/usr/bin/env bash
# scale.sh MOST SCALER... -- NODES.SBATCH [FLAG...]: as many tasks of the job array as the scaler wants, MOST at most: docs/slurm.md.
#
# SCALER... is the command of `feedwater scaler`, started here with an --http of its own; neither goes on without the other. Every 30 s (EVERY) this asks
# for the number, and submits what is lacking or cancels the newest tasks, known by their name, JOB. Where it does not know, it says why and does nothing.
#SBATCH --open-mode=append --output=scale-%j.log
set -uo pipefail
usage() { sed -n '2s/^# //p' "$0" >&2; exit 2; }
[[ ${1:-} =~ ^[0-9]{1,5}$ ]] || usage
most=$1 scaler=() job=${JOB:-feedwater} last='' rounds=10 scheme=http
while shift && [ "${1---}" != -- ]; do scaler+=("$1"); done
[[ ${#scaler[@]} -gt 0 && $# -gt 1 ]] || usage
shift
folder=$(mktemp -d) || exit
trap 'exit 143' HUP INT TERM
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$folder"' EXIT
"${scaler[@]}" --http "unix:$folder/wanted" & pid=$!

say() { printf '%(%F %T)T scale.sh: %s\n' -1 "$*"; }
# ask is answered by this scaler and no other one: nobody else may enter the folder of its socket.
ask() { curl -ksS --noproxy '*' --max-time 10 --write-out '\n%{http_code}' --unix-socket "$folder/wanted" "$scheme://scaler/wanted" 2>&1; }

# wanted sets n to what the scaler says; it answers 503 where it does not know.
wanted() {
  local text
  text=$(ask)
  [[ $text != *' to an HTTPS server'* ]] || { scheme=https; text=$(ask); }
  [[ $text =~ ^\{\"wanted\":\ ?(0|[1-9][0-9]{0,5})\}[[:space:]]+200$ ]] || { say "nothing is changed: the scaler: ${text//$'\n'/; }"; return 1; }
  n=${BASH_REMATCH[1]}
  if [ "$n" -gt "$most" ]; then say "$n are wanted, $most is the cap"; n=$most; fi
}

# tasks sets ids to the tasks that wait or run, the newest first. For ten rounds behind a submission it believes no queue that lacks the job:
# the queue may lag, and tasks that end at once are not to be submitted again and again.
tasks() {
  local text other
  text=$(squeue --me --name="$job" --array --noheader --states=PD,CF,R,S --format=%i) || { say 'nothing is changed: squeue has failed'; return 1; }
  other=$(grep -vE '^([0-9]+_[0-9]+)?$' <<<"$text") && { say "nothing is changed: squeue: $other"; return 1; }
  mapfile -t ids < <(sort -t_ -k1,1nr -k2,2nr <<<"$text" | sed '/^$/d')
  [ $((rounds += 1)) -gt 10 ] || grep -q "^${last}_" <<<"$text" || { say "nothing is changed: job $last, submitted last, is not in the queue; its log may say why"; return 1; }
}

change() {
  local have=${#ids[@]} text said
  if [ "$n" -gt "$have" ]; then
    text=$(sbatch --parsable --job-name="$job" --array=0-$((n - have - 1)) "$@") || { say 'nothing is changed: sbatch has failed'; return; }
    last=$(grep -oEm1 '^[0-9]+' <<<"$text" || echo unknown) rounds=0
    say "$have tasks, $n wanted: submitted $last"
  elif [ "$n" -lt "$have" ]; then
    rounds=10 said=$(scancel "${ids[@]:0:have-n}" 2>&1) || { say "scancel: $said"; return; }
    say "$have tasks, $n wanted: cancelled ${ids[*]:0:have-n}"
  fi
}

until [ -e "$folder/wanted" ] || ! kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
while kill -0 "$pid" 2>/dev/null; do
  wanted && tasks && change "$@"
  sleep "${EVERY:-30}" & wait -n "$pid" $!
done
say 'the scaler has ended, and so does this; tasks stay as they are'; exit 1
