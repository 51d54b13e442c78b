#!/usr/bin/env bash
# scale.sh URL MOST NODES.SBATCH [FLAG...]: as many tasks of the job array as `feedwater scaler` wants, MOST at most: docs/slurm.md.
#
# Every 30 s (EVERY) it asks URL, which is http://HOST:PORT/wanted, and does one thing: submit what is lacking, or cancel the newest tasks.
# Where it does not know, it changes nothing and says why. JOB is the name by which it knows its tasks.
set -uo pipefail
[ $# -ge 3 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
url=$1 most=$2
shift 2
[[ $most =~ ^[0-9]{1,5}$ ]] || { echo "scale.sh: MOST is a number, not $most" >&2; exit 2; }
job=${JOB:-feedwater}
last='' unseen=0

say() { printf '%(%F %T)T scale.sh: %s\n' -1 "$*"; }

# wanted sets n to what the scaler says; it answers 503 where it does not know.
wanted() {
  local text
  text=$(curl -sS --fail-with-body --max-time 10 "$url" 2>&1) || { say "nothing is changed: the scaler: ${text//$'\n'/; }"; return 1; }
  [[ $text =~ ^\{\"wanted\":\ ?([0-9]{1,6})\}$ ]] || { say "nothing is changed: no number: ${text:0:200}"; return 1; }
  n=${BASH_REMATCH[1]}
  if [ "$n" -gt "$most" ]; then say "$n are wanted, $most is the cap"; n=$most; fi
}

# tasks sets ids to the tasks that wait or run, the newest first. A queue without the job that was submitted last is believed after ten rounds.
tasks() {
  local text line
  text=$(squeue --me --name="$job" --array --noheader --states=PD,CF,R,S --format=%i 2>&1) || { say "nothing is changed: squeue: $text"; return 1; }
  mapfile -t ids < <(sort -t_ -k1,1nr -k2,2nr <<<"$text" | sed '/^$/d')
  for line in "${ids[@]}"; do
    [[ $line =~ ^[0-9]+_[0-9]+$ ]] || { say "nothing is changed: squeue: $line"; return 1; }
  done
  if [ -n "$last" ] && ! grep -q "^${last}_" <<<"$text" && [ $((unseen += 1)) -le 10 ]; then
    say "nothing is changed: job $last, submitted last, is not in the queue; its log may say why"
    return 1
  fi
  unseen=0
}

change() {
  local have=${#ids[@]} said
  if [ "$n" -gt "$have" ]; then
    said=$(sbatch --parsable --job-name="$job" --array=0-$((n - have - 1)) "$@" 2>&1) || { say "nothing is changed: sbatch: $said"; return; }
    last=${said%%;*}
    say "$have tasks, $n wanted: submitted $said"
  elif [ "$n" -lt "$have" ]; then
    said=$(scancel "${ids[@]:0:have-n}" 2>&1) || { say "scancel: $said"; return; }
    last=''
    say "$have tasks, $n wanted: cancelled ${ids[*]:0:have-n}"
  fi
}

while wanted && tasks && change "$@"; sleep "${EVERY:-30}"; do :; done
