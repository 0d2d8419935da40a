"""What users write becomes what a scheduler sees: workloads are expanded into PodGroups and pods, as controllers do.

`observed_objects` is what the files hold already, so that nothing is made twice. `workload_reading` reads workloads in
the order in which they need each other: `job_sources` make jobs, `volcano_jobs` and `kube_workloads` expand them by the
pure halves of the controllers, after the `submission`. `bare_pods` gives pods without a PodGroup theirs;
`workload_expansion` makes objects of it all.
"""
