{{- /* What the node is told: docs/configuration.md. */ -}}
{{- define "feedwater.config" -}}
data:
  {{- range $name, $place := .Values.data }}
  {{ quote $name }}: {{ $place.url | default (printf "/data/%s" $name) | quote }}
  {{- end }}
listen: :7070
http: :7071
health: :7073
cache-dir: /var/cache/feedwater
cache-limit: {{ .Values.cache.lists }}GiB
index-limit: {{ .Values.cache.index }}GiB
table-limit: {{ .Values.cache.tables }}GiB
{{- with .Values.cache.copies }}
index-copies: {{ . }}GiB
{{- end }}
{{- with .Values.cache.read }}
read-cache: /var/cache/feedwater/read
read-cache-limit: {{ . }}GiB
{{- end }}
drain-timeout: {{ .Values.drainTimeout }}s
{{- if .Values.insecure }}
insecure: true
{{- else }}
tls-cert: /etc/feedwater/tls/{{ .Values.tls.cert }}
tls-key: /etc/feedwater/tls/{{ .Values.tls.key }}
{{- if .Values.tls.clientCertificates }}
client-ca: /etc/feedwater/tls/{{ .Values.tls.ca }}
{{- end }}
{{- end }}
{{- if .Values.tokens.secret }}
token-file: /etc/feedwater/tokens/{{ .Values.tokens.key }}
{{- end }}
{{- with .Values.identities }}
identities:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.config }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The GiB that all of it may take on the pod's own disk, and one more. */ -}}
{{- define "feedwater.cacheSize" -}}
{{- $tables := mul .Values.cache.tables (max 1 (len .Values.identities)) -}}
{{- add .Values.cache.lists .Values.cache.index $tables .Values.cache.copies .Values.cache.read 1 -}}
{{- end }}
