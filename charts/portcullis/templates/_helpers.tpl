{{/* The families that are on, as a value of --families. */}}
{{- define "portcullis.families" -}}
{{- $on := list -}}
{{- range $family, $isOn := .Values.families }}{{ if $isOn }}{{ $on = append $on $family }}{{ end }}{{ end -}}
{{- join "," $on -}}
{{- end }}

{{/* Rejects combinations of values that the schema cannot reject. */}}
{{- define "portcullis.check" -}}
{{- if not (include "portcullis.families" .) -}}
{{- fail "families: all are off; switch at least one on" -}}
{{- end -}}
{{- $families := dict "composites" "EN" "dry-run-deployer" "DR" "overwrite-trees" "OW" -}}
{{- range .Values.companion.controllers -}}
{{- $family := get $families . -}}
{{- if not (get $.Values.families $family) -}}
{{- fail (printf "companion.controllers: %s belongs to the family %s, which families.%s switches off" . $family $family) -}}
{{- end -}}
{{- end -}}
{{- if and (eq .Values.certificate.way "secret") (not .Values.certificate.caBundle) -}}
{{- fail "certificate.caBundle: required with certificate.way secret: the CA of the certificate, PEM in base64" -}}
{{- end -}}
{{- if and .Values.clientCertificates.names (not (include "portcullis.clientCertificates" .)) -}}
{{- fail "clientCertificates.names: also set configMapName or secretName, which has their CA" -}}
{{- end -}}
{{- if and .Values.audit.enabled (not .Values.companion.enabled) -}}
{{- fail "audit.enabled: needs the controller manager; set companion.enabled" -}}
{{- end -}}
{{- end }}

{{/* The configuration file. If the dry-run deployer runs, adds the section dryRun, so that items are routed to it. */}}
{{- define "portcullis.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if and .Values.companion.enabled (has "dry-run-deployer" .Values.companion.controllers) (not (hasKey $config "dryRun")) -}}
{{- $_ := set $config "dryRun" dict -}}
{{- end -}}
{{- toYaml $config -}}
{{- end }}

{{/* Whether any controller is on. */}}
{{- define "portcullis.companion" -}}
{{- if and .Values.companion.enabled (or .Values.families.DR .Values.families.GD .Values.families.KZ .Values.companion.controllers .Values.audit.enabled) -}}true{{- end -}}
{{- end }}

{{- define "portcullis.clientCertificates" -}}
{{- or .Values.clientCertificates.configMapName .Values.clientCertificates.secretName -}}
{{- end }}

{{- define "portcullis.image" -}}
{{- with .Values.image -}}
{{- with .registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end -}}
{{- end -}}
{{- end }}

{{/* The labels of the objects of a component: (list . "companion") */}}
{{- define "portcullis.labels" -}}
{{ include "portcullis.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ (index . 0).Chart.Name }}-{{ (index . 0).Chart.Version }}
{{- with (index . 0).Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The selector of a Deployment; immutable. */}}
{{- define "portcullis.selector" -}}
app.kubernetes.io/name: {{ index . 1 }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
{{- end }}

{{/* Fields of every pod. */}}
{{- define "portcullis.pod" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Spreads the replicas of a component over nodes and zones: (list . "portcullis") */}}
{{- define "portcullis.spread" -}}
topologySpreadConstraints:
  {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: {{ (index $ 0).Values.topologySpread.whenUnsatisfiable }}
    labelSelector:
      matchLabels:
        {{- include "portcullis.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}

{{/* Fields of every container, with the fewest privileges. */}}
{{- define "portcullis.container" -}}
image: {{ include "portcullis.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* The command line of the server. */}}
{{- define "portcullis.serve" -}}
- serve
{{- if ne (int .Values.port) 9443 }}
- --listen=[::]:{{ .Values.port }}
{{- end }}
{{- if ne (int .Values.adminPort) 8080 }}
- --admin-listen=[::]:{{ .Values.adminPort }}
{{- end }}
- --families={{ include "portcullis.families" . }}
- --config=/etc/portcullis/config/portcullis.yaml
{{- if eq .Values.certificate.way "self-managed" }}
- --self-managed={{ .Release.Namespace }}/{{ .Release.Name }}-ca
- --server-name={{ .Release.Name }}.{{ .Release.Namespace }}.svc
{{- else }}
- --certs=/etc/portcullis/certs
- --publish-ca={{ ternary "/etc/portcullis/config/ca.crt" "/etc/portcullis/certs/ca.crt" (eq .Values.certificate.way "secret") }}
- --ca-state={{ .Release.Namespace }}/{{ .Release.Name }}-ca
{{- end }}
{{- if include "portcullis.clientCertificates" . }}
- --client-ca=/etc/portcullis/clients/ca.crt
{{- range .Values.clientCertificates.names }}
- --client-name={{ . }}
{{- end }}
{{- end }}
{{- if .Values.shadow }}
- --shadow
{{- end }}
{{- with .Values.traces.endpoint }}
- --otlp-endpoint={{ . }}
{{- end }}
- --log-format={{ .Values.log.format }}
- --log={{ .Values.log.filter }}
{{- range .Values.arguments }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* The command line of the companion. */}}
{{- define "portcullis.reconcile" -}}
- reconcile
- --families={{ include "portcullis.families" . }}
{{- range .Values.companion.controllers }}
- --{{ . }}
{{- end }}
{{- if has "dry-run-deployer" .Values.companion.controllers }}
{{- range dig "dryRun" "types" list .Values.config }}
- --dry-run-type={{ . }}
{{- end }}
{{- end }}
{{- if .Values.audit.enabled }}
- --audit={{ .Values.audit.interval }}
{{- end }}
{{- if include "portcullis.companionConfig" . }}
- --config=/etc/portcullis/config/portcullis.yaml
{{- end }}
- --log-format={{ .Values.log.format }}
- --log={{ .Values.log.filter }}
{{- range .Values.companion.arguments }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* The hosts that the companion's controller flux-trees fetches artifacts from. It reads them when it starts. */}}
{{- define "portcullis.companionHosts" -}}
{{- if .Values.families.KZ }}{{ with .Values.config.artifactHosts }}{{ toJson . }}{{ end }}{{ end -}}
{{- end }}

{{/* Whether the companion reads the configuration file. */}}
{{- define "portcullis.companionConfig" -}}
{{- if or .Values.audit.enabled (include "portcullis.companionHosts" .) }}true{{ end -}}
{{- end }}

{{- define "portcullis.serviceAccount" -}}
{{- with .Values.serviceAccount }}{{ .name | default (ternary $.Release.Name "default" .create) }}{{ end -}}
{{- end }}

{{- define "portcullis.companionServiceAccount" -}}
{{- with .Values.companion.serviceAccount }}{{ .name | default (ternary (printf "%s-companion" $.Release.Name) "default" .create) }}{{ end -}}
{{- end }}

{{/* The probes of a container that serves /livez and /readyz. */}}
{{- define "portcullis.probes" -}}
startupProbe:
  httpGet: {path: /livez, port: admin}
  {{- with .Values.startupProbe }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
livenessProbe:
  httpGet: {path: /livez, port: admin}
  {{- with .Values.livenessProbe }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
readinessProbe:
  httpGet: {path: /readyz, port: admin}
  {{- with .Values.readinessProbe }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
