#!/bin/sh
# Print a kubeconfig for a user who may do everything in a namespace of the same name, and look at the rest.
set -e
user=${1:?the name of the user}
{
  kubectl create namespace "$user"
  kubectl create serviceaccount "$user" -n "$user"
  kubectl create rolebinding "$user" -n "$user" --clusterrole edit --serviceaccount "$user:$user"
  kubectl create clusterrolebinding "lab-member-$user" --clusterrole lab-member --serviceaccount "$user:$user"
} >&2
token=$(kubectl create token "$user" -n "$user" --duration 720h)
kubectl config view --flatten --minify -o go-template="
apiVersion: v1
kind: Config
current-context: $user
clusters:
- name: lab
  cluster:
    server: {{(index .clusters 0).cluster.server}}
    certificate-authority-data: {{index (index .clusters 0).cluster \"certificate-authority-data\"}}
users:
- name: $user
  user: {token: $token}
contexts:
- name: $user
  context: {cluster: lab, user: $user, namespace: $user}
" --raw
