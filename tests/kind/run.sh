#!/usr/bin/env bash
# Tests the image and the chart on a kind cluster: installs, denies a request, upgrades, uninstalls.
#
#   tests/kind/run.sh IMAGE      an image in the local docker; needs docker, kind, kubectl and helm
set -euo pipefail
image=${1:?name an image, such as portcullis:0.1.0}
root=$(cd "$(dirname "$0")/../.." && pwd)
examples=$root/examples/getting-started
chart=$root/charts/portcullis
cluster=portcullis-$$
export KUBECONFIG=$(mktemp)
trap 'kind delete cluster --name "$cluster"; rm -f "$KUBECONFIG"' EXIT

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'FAILED: %s\n' "$*" >&2; kubectl -n portcullis-system logs deploy/portcullis --tail=50 >&2 || true; exit 1; }

say "a cluster with the image"
kind create cluster --name "$cluster" --wait 120s
kind load docker-image "$image" --name "$cluster"

say "install: a hook verifies that the webhooks answer"
install() {
  helm upgrade --install portcullis "$chart" --namespace portcullis-system --create-namespace --wait --timeout 5m \
    --set "image.repository=${image%:*}" --set "image.tag=${image##*:}" --set image.pullPolicy=Never "$@"
}
install

say "a wrong tree is denied, a right one is admitted"
if out=$(kubectl apply -f "$examples/wrong.yaml" 2>&1); then fail "a wrong tree was stored: $out"; fi
grep -q KZ001 <<< "$out" || fail "denied, but not by KZ001: $out"
kubectl apply -f "$examples/right.yaml"

say "upgrade: every request gets an answer"
install --set shadow=true
kubectl apply -f "$examples/wrong.yaml"
install --set shadow=false

say "uninstall: the webhook configurations are deleted"
helm uninstall portcullis --namespace portcullis-system --wait
left=$(kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o name | grep portcullis || true)
[ -z "$left" ] || fail "left behind: $left"
kubectl delete -f "$examples/wrong.yaml"
say "done"
