"""What users write becomes what a scheduler sees: workloads are expanded into PodGroups and pods, as controllers do.

`observed_objects` is what the files hold already, so that nothing is made twice. `volcano_jobs` and `kube_workloads`
expand what `workload_reading` reads, by the pure halves of the controllers; `bare_pods` gives pods without a PodGroup
theirs; `workload_expansion` makes objects of it all.
"""
