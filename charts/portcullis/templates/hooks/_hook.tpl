{{/* The annotations of a hook's object: (list "pre-delete" "-5"). Helm 4 prints the log of a Job that fails. */}}
{{- define "portcullis.hook" -}}
helm.sh/hook: {{ index . 0 }}
helm.sh/hook-weight: {{ index . 1 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
helm.sh/hook-output-log-policy: hook-failed
{{- end }}

{{/* A Job that runs a subcommand once, and the name of the ConfigMap with its configuration, if it reads one:
     (list . "verify" "post-install,post-upgrade" (list "--namespace=default") "portcullis") */}}
{{- define "portcullis.job" -}}
{{- $root := index . 0 }}
{{- $name := printf "%s-%s" $root.Release.Name (index . 1) }}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "portcullis.labels" (list $root (printf "portcullis-%s" (index . 1))) | nindent 4 }}
  annotations:
    {{- include "portcullis.hook" (list (index . 2) "0") | nindent 4 }}
spec:
  backoffLimit: 3
  activeDeadlineSeconds: 600
  # Exit code 1 is a result, for which the command has waited. Other failures are tried again.
  podFailurePolicy:
    rules:
      - action: FailJob
        onExitCodes: {operator: In, values: [1]}
  template:
    metadata:
      labels:
        {{- include "portcullis.labels" (list $root (printf "portcullis-%s" (index . 1))) | nindent 8 }}
    spec:
      serviceAccountName: {{ $name }}
      restartPolicy: Never
      {{- include "portcullis.pod" $root | nindent 6 }}
      containers:
        - name: {{ index . 1 }}
          {{- include "portcullis.container" $root | nindent 10 }}
          args:
            - {{ index . 1 }}
            {{- range index . 3 }}
            - {{ . }}
            {{- end }}
          resources:
            requests: {cpu: 10m, memory: 16Mi}
            limits: {memory: 64Mi}
          {{- with index . 4 }}
          volumeMounts:
            - {name: config, mountPath: /etc/portcullis/config, readOnly: true}
      volumes:
        - name: config
          configMap: {name: {{ . }}}
          {{- end }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  {{- with $root.Values.commonLabels }}
  labels:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  annotations:
    {{- include "portcullis.hook" (list (index . 2) "-5") | nindent 4 }}
{{- end }}

{{/* The binding of a role of the same name to a hook's ServiceAccount: (list . "verify" "post-install" "ClusterRole" "") */}}
{{- define "portcullis.binding" -}}
{{- $root := index . 0 }}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ index . 3 }}Binding
metadata:
  name: portcullis-{{ index . 1 }}
  {{- with index . 4 }}
  namespace: {{ . }}
  {{- end }}
  {{- with $root.Values.commonLabels }}
  labels:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  annotations:
    {{- include "portcullis.hook" (list (index . 2) "-5") | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ index . 3 }}
  name: portcullis-{{ index . 1 }}
subjects:
  - kind: ServiceAccount
    name: {{ $root.Release.Name }}-{{ index . 1 }}
    namespace: {{ $root.Release.Namespace }}
{{- end }}
