{{- define "feedwater.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "feedwater.fullname" -}}
{{- $name := include "feedwater.name" . -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "feedwater.selector" -}}
app.kubernetes.io/name: {{ include "feedwater.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "feedwater.labels" -}}
{{ include "feedwater.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "feedwater.metadata" -}}
name: {{ quote .name }}
namespace: {{ quote .root.Release.Namespace }}
labels:
  {{- include "feedwater.labels" . | nindent 2 }}
{{- end }}

{{- define "feedwater.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "feedwater.scaled" -}}
{{- if or .Values.scaler.enabled .Values.keda.enabled }}true{{ end }}
{{- end }}

{{- /* How the scaler names the nodes. EndpointSlices take the Role; the Service's name in DNS takes no rights. */ -}}
{{- define "feedwater.nodes" -}}
{{- $name := include "feedwater.fullname" . -}}
{{- if .Values.rbac.create }}k8s:{{ .Release.Namespace }}/{{ $name }}:grpc
{{- else }}dns:{{ $name }}.{{ .Release.Namespace }}.svc:7070
{{- end }}
{{- end }}

{{- /* How many nodes the Deployment asks for; empty: nothing is said, and the API server makes it one where there is none yet.
Under KEDA it is the number that there is. Left out, a number that an earlier revision had would be removed by Helm, and become one. Nothing is said
without a cluster, as in helm template, and where there is no Deployment yet. */ -}}
{{- define "feedwater.replicas" -}}
{{- if not .Values.keda.enabled }}{{ .Values.replicas }}
{{- else }}
{{- $there := lookup "apps/v1" "Deployment" .Release.Namespace (include "feedwater.fullname" .) -}}
{{- if $there }}{{ $there.spec.replicas }}{{ end }}
{{- end }}
{{- end }}

{{- define "feedwater.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "feedwater.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "feedwater.probes" -}}
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 1
  failureThreshold: 3
livenessProbe:
  httpGet: {path: /livez, port: health}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}

{{- define "feedwater.spread" -}}
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  matchLabelKeys: [pod-template-hash]
  labelSelector:
    matchLabels:
      {{- include "feedwater.selector" . | nindent 6 }}
{{- end }}

{{- /* On which machines pods may run, of the values of nodes or of those of the scaler. */ -}}
{{- define "feedwater.placement" -}}
{{- with .priorityClassName }}
priorityClassName: {{ quote . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "feedwater.ourPods" -}}
- podSelector: {}
{{- end }}
