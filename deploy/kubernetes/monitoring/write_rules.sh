#!/usr/bin/env bash
# Writes prometheus_rule.yaml from the rules of deploy/prometheus. Run it after a change of them.
set -euo pipefail
cd "$(dirname "$0")"
rules=../../prometheus
{
  cat <<'HEAD'
# Written by write_rules.sh from deploy/prometheus/recording_rules.yml and alerts.yml.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: lengthwise
  labels: {app.kubernetes.io/name: lengthwise}
spec:
  groups:
HEAD
  for file in recording_rules alerts; do sed '1,/^groups:/d; s/^./  &/' "$rules/$file.yml"; done
} >prometheus_rule.yaml
