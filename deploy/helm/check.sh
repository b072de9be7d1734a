#!/bin/sh
# Lint the charts and hold what they render against Kubernetes' schemas: with default values, and with
# all that can be switched on. Needs helm and, as the first argument, kubeconform; without one only helm
# runs.
set -eu
cd "$(dirname "$0")"
kubeconform=${1:-}
check() {
  helm lint --strict "$@"
  if [ -n "$kubeconform" ]; then
    helm template name "$@" | "$kubeconform" -strict -summary -kubernetes-version 1.31.0
  else
    helm template name "$@" > /dev/null
  fi
}
digest=sha256:$(printf '%064d' 0)
check podium-studio
check podium-studio --set ingress.enabled=true,image.digest="$digest",networkPolicy.enabled=false
check podium-serving
check podium-serving --set search.existingSecret=search,tokens.existingSecret=tokens \
  --set rankingLog.enabled=true,image.digest="$digest" --set-string podAnnotations.model=2 \
  --set-json 'networkPolicy.egress=[{"to":[{"podSelector":{"matchLabels":{"app":"opensearch"}}}],"ports":[{"port":9200}]}]'
if helm template name podium-serving --set search.existingSecret=search > /dev/null 2>&1; then
  echo "a search without egress to the engine was not refused" >&2
  exit 1
fi
