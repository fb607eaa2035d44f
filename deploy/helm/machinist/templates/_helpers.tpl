{{/* A manifest of deploy/kustomize, in the release's namespace. */}}
{{- define "machinist.manifest" -}}
{{ .root.Files.Get .file | replace "openshift-machine-api" .root.Release.Namespace }}
{{- end }}

{{- define "machinist.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end }}

{{- define "machinist.address" -}}
{{- if contains ":" .Values.listenAddress -}}[{{ .Values.listenAddress }}]{{- else -}}{{ .Values.listenAddress }}{{- end -}}
{{- end }}
