{{/* The image: by digest, by tag, or that of this version. */}}
{{- define "stromboli.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* References to the Secrets for the registry. */}}
{{- define "stromboli.pullSecrets" -}}
{{- $references := list -}}
{{- range .Values.image.pullSecrets -}}
{{- $references = append $references (dict "name" .) -}}
{{- end -}}
{{ toYaml $references }}
{{- end -}}

{{/* An expression in CEL for pods of our schedulers; `default` unless names are given. */}}
{{- define "stromboli.ourPods" -}}
{{- if .names -}}
has(object.spec.schedulerName) && object.spec.schedulerName in {{ toJson .names }}
{{- else -}}
{{ .default }}
{{- end -}}
{{- end -}}
