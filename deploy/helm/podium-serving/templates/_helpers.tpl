{{- define "podium-serving.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "podium-serving.labels" -}}
app.kubernetes.io/name: podium-serving
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "podium-serving.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}
