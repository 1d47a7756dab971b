#!/usr/bin/env bash
# The manifests of deploy/kubernetes fit Kubernetes' schema, with the Python of the tests.
exec "${LENGTHWISE_TEST_PYTHON:-python3}" tests/fleet/check_kubernetes.py deploy/kubernetes
