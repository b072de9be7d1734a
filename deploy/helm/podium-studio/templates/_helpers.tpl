{{- define "podium-studio.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "podium-studio.labels" -}}
app.kubernetes.io/name: podium-studio
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "podium-studio.pod" -}}
automountServiceAccountToken: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "podium-studio.container" -}}
image: "{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
envFrom:
  - secretRef: { name: {{ .Values.existingSecret | quote }} }
env:
  - { name: PODIUM_STUDIO_PUBLIC_URL, value: {{ .Values.publicUrl | quote }} }
  - { name: PODIUM_STUDIO_TRUSTED_PROXIES, value: {{ .Values.trustedProxies | quote }} }
  {{- range $name, $value := .Values.env }}
  - { name: {{ $name | quote }}, value: {{ $value | quote }} }
  {{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
volumeMounts:
  - { name: files, mountPath: /var/lib/podium }
  - { name: temporary, mountPath: /tmp }
{{- end }}

{{- define "podium-studio.volumes" -}}
- name: files
  persistentVolumeClaim:
    claimName: {{ .Values.files.existingClaim | default (printf "%s-files" (include "podium-studio.name" .)) | quote }}
- name: temporary
  emptyDir: {}
{{- end }}
