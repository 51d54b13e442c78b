{{- /* What the schema cannot say of the values. Each error begins with the value's name. */ -}}
{{- define "feedwater.check" -}}
{{- $name := include "feedwater.fullname" . -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) }}
{{- fail (printf "'fullnameOverride': no Service can be called %q, as this release's would be: give a name of a-z, 0-9 and -, which begins with a letter" $name) }}
{{- end }}
{{- if gt (int .Values.keda.minReplicas) (int .Values.keda.maxReplicas) }}
{{- fail (printf "'keda.minReplicas': %d, but keda.maxReplicas is %d" (int .Values.keda.minReplicas) (int .Values.keda.maxReplicas)) }}
{{- end }}
{{- $watched := or (include "feedwater.scaled" .) .Values.metrics.podMonitor.enabled -}}
{{- $watchers := list -}}
{{- range $identity, $rule := .Values.identities }}
{{- if $rule.watch }}{{ $watchers = append $watchers $identity }}{{ end }}
{{- end }}
{{- if and $watched .Values.identities (not $watchers) }}
{{- fail "'identities': none has watch: true, without which neither the scaler nor Prometheus learns anything of the nodes" }}
{{- end }}
{{- end }}
