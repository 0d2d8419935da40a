"""Every label, annotation, condition, reason and message text, as users of Volcano and Kubernetes know them.

A text with `{}` fields is a template for `str.format`.
"""

# --- well-known names ---
SCHEDULER_NAME = "volcano"
OTHER_SCHEDULER_NAME = "default-scheduler"
DEFAULT_NAMESPACE = "default"
ROOT_QUEUE = "root"
DEFAULT_QUEUE = "default"
SYSTEM_NAMESPACE = "kube-system"
SYSTEM_CLUSTER_CRITICAL = "system-cluster-critical"
SYSTEM_NODE_CRITICAL = "system-node-critical"

# --- resources ---
CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
EPHEMERAL_STORAGE = "ephemeral-storage"
STORAGE = "storage"
NVIDIA_GPU = "nvidia.com/gpu"
GPU_PRODUCT = "nvidia.com/gpu.product"
"""The label of nodes with the model of their GPUs."""
HUGE_PAGES_PREFIX = "hugepages-"
ATTACHABLE_VOLUMES_PREFIX = "attachable-volumes-"
COUNT_PREFIX = "count/"
REQUESTS_PREFIX = "requests."
LIMITS_PREFIX = "limits."

# --- labels and annotations: pods and PodGroups ---
GROUP_NAME = "scheduling.k8s.io/group-name"
GROUP_MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"
STORAGE_CAPACITY_SCORING = "StorageCapacityScoring"
QUEUE_ADMISSION = "SchedulingGatesQueueAdmission"
"""A feature gate: pods wait at a scheduling gate until their queue has room."""
QUEUE_ALLOCATION_GATE = "scheduling.volcano.sh/queue-allocation-gate"
TASK_SPEC = "volcano.sh/task-spec"
TASK_INDEX = "volcano.sh/task-index"
TASK_PRIORITY = "volcano.sh/task-priority"
JOB_NAME = "volcano.sh/job-name"
JOB_NAMESPACE = "volcano.sh/job-namespace"
JOB_QUEUE_NAME = "volcano.sh/queue-name"
JOB_VERSION = "volcano.sh/job-version"
JOB_RETRY_COUNT = "volcano.sh/job-retry-count"
TEMPLATE_UID = "volcano.sh/template-uid"
PARTITION_ID = "volcano.sh/partition-id"
OUT_OF_SYNC = "volcano.sh/controller-out-of-sync"
JOB_FORWARDING = "volcano.sh/job-forwarding"
LOST_AT = "stromboli.sh/lost-at"
"""On a pod that replaces one that was evicted: when that happened."""
PREEMPTABLE = "volcano.sh/preemptable"
COOLDOWN_TIME = "volcano.sh/cooldown-time"
MIN_RUN_TIME = "stromboli.sh/min-run-time"
RUN_TIME = "stromboli.sh/run-time"
"""On a pod: how long it runs on a simulated node, such as `30s`, `10s..60s`, `exp(30s)` or `forever`."""
MOVABLE = "stromboli.sh/movable"
"""On a pod or a PodGroup: whether `consolidate` may move it."""
USER = "stromboli.sh/user"
TIME_LIMIT = "stromboli.sh/time-limit"
"""On a PodGroup or a pod: how long it runs at most; on a Queue: the same for jobs that say nothing themselves."""
AFTER = "stromboli.sh/after"
"""On a Job: the jobs that it waits for, such as `prepare` or `afterok:prepare,afterany:clean`; also the scheduling gate
that holds its pods until then."""
AFTER_OBSERVED = "stromboli.sh/after-observed"
"""On a Job, set by its controller: the jobs that it waits for which have been seen (by uid), or have let it go on."""
PARALLELISM = "stromboli.sh/parallelism"
"""On a Job: how many of its pods may run at a time."""
REVOCABLE_ZONE = "volcano.sh/revocable-zone"
ANY_REVOCABLE_ZONE = "*"
JDB_MIN_AVAILABLE = "volcano.sh/jdb-min-available"
JDB_MAX_UNAVAILABLE = "volcano.sh/jdb-max-unavailable"
SLA_WAITING_TIME = "volcano.sh/sla-waiting-time"
OLD_SLA_WAITING_TIME = "sla-waiting-time"
NETWORK_TOPOLOGY_MODE = "volcano.sh/network-topology-mode"
NETWORK_TOPOLOGY_HIGHEST_TIER = "volcano.sh/network-topology-highest-tier"
TOPOLOGY_SOURCE = "volcano.sh/network-topology-source"
"""Which source discovered a HyperNode."""
TOPOLOGY_SOURCE_LABEL = "label"
"""The source that discovers HyperNodes from labels of nodes."""
NUMA_TOPOLOGY_POLICY = "volcano.sh/numa-topology-policy"
TOPOLOGY_DECISION = "volcano.sh/topology-decision"
"""The CPUs that a scheduler chose for a pod, for the node and for schedulers that start anew."""
TASK_TOPOLOGY = (
    "volcano.sh/task-topology-affinity",
    "volcano.sh/task-topology-anti-affinity",
    "volcano.sh/task-topology-task-order",
)
RESOURCE_STRATEGY_SCORING_TYPE = "volcano.sh/resource-strategy-scoring-type"
RESOURCE_STRATEGY_WEIGHT = "volcano.sh/resource-strategy-weight"

# --- labels and annotations: queues ---
FAIR_SHARE = "stromboli.sh/fair-share"
HIERARCHY = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS = "volcano.sh/hierarchy-weights"
CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"
NODE_GROUP_RESOURCE_LIMITS = "volcano.sh/nodegroup-resource-limits"

# --- labels and annotations: nodes and volumes ---
NODE_GROUP_NAME = "volcano.sh/nodegroup-name"
OVERSUBSCRIPTION_CPU = "volcano.sh/oversubscription-cpu"
OVERSUBSCRIPTION_MEMORY = "volcano.sh/oversubscription-memory"
HOSTNAME = "kubernetes.io/hostname"
OS = "kubernetes.io/os"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"
TAINT_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
NODE_NAME_FIELD = "metadata.name"
DEFAULT_STORAGE_CLASS = "storageclass.kubernetes.io/is-default-class"
OLD_DEFAULT_STORAGE_CLASS = "storageclass.beta.kubernetes.io/is-default-class"
STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
CSI_DRIVER_NAME = "csi.storage.k8s.io/csi-driver-name"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"
OLD_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"

# --- phases, states, policies ---
POD_PENDING = "Pending"
POD_RUNNING = "Running"
POD_SUCCEEDED = "Succeeded"
POD_FAILED = "Failed"
POD_UNKNOWN = "Unknown"
GROUP_PENDING = "Pending"
GROUP_INQUEUE = "Inqueue"
GROUP_RUNNING = "Running"
GROUP_UNKNOWN = "Unknown"
GROUP_COMPLETED = "Completed"
QUEUE_OPEN = "Open"
QUEUE_CLOSED = "Closed"
QUEUE_CLOSING = "Closing"
OPEN_QUEUE = "OpenQueue"
CLOSE_QUEUE = "CloseQueue"
QUEUE_COMMANDS_NAMESPACE = "default"
"""Where commands for queues count: queues are in no namespace, and this is where `vcctl queue operate` creates them."""
SYNC_QUEUE = "SyncQueue"
TOPOLOGY_HARD = "hard"
TOPOLOGY_SOFT = "soft"
PREEMPT_NEVER = "Never"
NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
HONOR = "Honor"
IGNORE = "Ignore"
RESTART_ALWAYS = "Always"
VOLUME_AVAILABLE = "Available"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
CLAIM_LOST = "Lost"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
IMMEDIATE = "Immediate"
RESIZE_INFEASIBLE = "Infeasible"

# --- condition types ---
CONDITION_POD_SCHEDULED = "PodScheduled"
CONDITION_READY = "Ready"
CONDITION_DISRUPTION_TARGET = "DisruptionTarget"
CONDITION_RESIZE_PENDING = "PodResizePending"
CONDITION_LIMITS_ENFORCED = "stromboli.sh/LimitsEnforced"
LIMITS_NOT_ENFORCED = "LimitsNotEnforced"
CONDITION_UNSCHEDULABLE = "Unschedulable"
CONDITION_SCHEDULED = "Scheduled"
CONDITION_MOVED = "Moved"
CONDITION_GROUP_SCHEDULED = "PodGroupScheduled"
CONDITION_GROUP_INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"

# --- reasons on pods ---
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"

# --- reasons on PodGroup conditions ---
NOT_ENOUGH_RESOURCES = "NotEnoughResources"
LET_IN = "LetIn"
PODS_TO_COME = (
    "admitted to its queue; its controller creates its pods, and its events report why if it cannot"
)
NOT_ENOUGH_TASKS = "NotEnoughTasks"
NOT_ENOUGH_PODS_OF_TASK = "NotEnoughPodsOfTask"
GROUP_SCHEDULED = "Scheduled"
CONSOLIDATED = "Consolidated"
MOVED_MESSAGE = "moved at {time} to make room for {beneficiary}: {pods}"
TASKS_READY = "tasks in gang are ready to be scheduled"

# --- events: types, reasons, texts ---
NORMAL = "Normal"
WARNING = "Warning"
EVENT_SCHEDULED = "Scheduled"
EVENT_UNSCHEDULABLE = "Unschedulable"
EVENT_FAILED_SCHEDULING = "FailedScheduling"
EVENT_WAITING_FOR_VOLUME = "WaitingForVolume"
EVENT_EVICT = "Evict"
EVENT_FIELD_IGNORED = "FieldIgnored"
EVENT_POLICY_LOADED = "PolicyLoaded"
EVENT_POLICY_WARNING = "PolicyWarning"
EVENT_POLICY_REFUSED = "PolicyRefused"
EVENT_PLUGIN_SET_ASIDE = "PluginSetAside"
EVENT_PLUGIN_RESUMED = "PluginResumed"
EVENT_HYPER_NODE_LEFT_OUT = "HyperNodeLeftOut"
EVENT_HYPER_NODE_USED = "HyperNodeUsed"
EVENT_UNKNOWN_MEMBERS = "UnknownMembers"
EVENT_TIER_NOT_ABOVE_MEMBERS = "TierNotAboveMembers"
EVENT_AMBIGUOUS_TIER_NAME = "AmbiguousTierName"
SUCCESSFULLY_ASSIGNED = "Successfully assigned {namespace}/{name} to {node}"
POD_EVICTED = "Pod is evicted, because of {reason}"
PREEMPTING = "{scheduler}: preempting to accommodate a higher priority pod"
GANG_UNSCHEDULABLE = "{count}/{total} tasks in gang unschedulable: {message}"
ORIGIN_OF_JOB = ". Origin reason is: {message}"
BIND_FAILED = "failed to bind to node {node}: {error}"
PREBIND_FAILED = "execute preBind for pod {pod} failed: {error}, resync the task"

# --- what a job and its tasks tell their user ---
GROUP_IS_READY = "pod group is ready"
GROUP_IS_NOT_READY = "pod group is not ready"
MIN_AVAILABLE_COUNT = "{count} minAvailable"
STATUS_COUNT = "{count} {status}"
ONCE_MIN_AVAILABLE = "can possibly be assigned to a node, once minAvailable is satisfied"
ONCE_RELEASED = "can possibly be assigned to a node, once resource is released and minAvailable is satisfied"
QUEUE_MISSING = 'queue "{queue}" does not exist'
ROLE_ALREADY_FAILED_TITLE = "Task {task} with role spec {role} has already predicated failed"
ROLE_ALREADY_FAILED = f"{ROLE_ALREADY_FAILED_TITLE}, skip"
REDISTRIBUTED_TITLE = "Resources on node {node} were redistributed to job {job} by backfill"
REDISTRIBUTED = f"{REDISTRIBUTED_TITLE}: gang not ready"

# --- why nodes refuse a task ---
NODES_UNAVAILABLE = "0/{count} nodes are unavailable"
IN_HYPER_NODE = "In hyperNode {name}: {message}"
ACROSS_TIER = "its gang would leave the tier of its network topology"
REASON_COUNT = "{count} {reason}"
NOT_IN_SHARD = "node isn't in scheduler node shard"
INSUFFICIENT = "Insufficient {}"
INSUFFICIENT_ATTACHMENTS = "Insufficient attachable-volumes-csi-{driver}"
POD_NUMBER_EXCEEDED = "node(s) pod number exceeded"
NODE_UNSCHEDULABLE = "node(s) were unschedulable"
NODE_AFFINITY_MISMATCH = "node(s) didn't match Pod's node affinity/selector"
AFFINITY_TERMS_CONFLICT = "pod affinity terms conflict"
UNTOLERATED_TAINT = "node(s) had untolerated taint(s)"
PORTS_TAKEN = "node(s) didn't have free ports for the requested pod ports"
POD_AFFINITY_MISMATCH = "node(s) didn't match pod affinity rules"
POD_ANTI_AFFINITY_MISMATCH = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"
SPREAD_MISMATCH = "node(s) didn't match pod topology spread constraints"
SPREAD_MISSING_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
UNBOUND_IMMEDIATE_CLAIMS = "pod has unbound immediate PersistentVolumeClaims"
UNBOUND_CLAIM = 'persistentvolumeclaim "{name}" is not bound'
JOINED_REASONS = ", "
"""Between the reasons of one filter for one node."""
VOLUME_AFFINITY_MISMATCH = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME_TO_BIND = "node(s) didn't find available persistent volumes to bind"
NOT_ENOUGH_STORAGE = "node(s) did not have enough free storage"
BOUND_TO_MISSING_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
TOO_MANY_VOLUMES = "node(s) exceed max volume count"
DISK_CONFLICT = "node(s) had no available disk"
CLAIM_IN_USE = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
LOOKING_UP_CLAIM = 'looking up PVC {namespace}/{name}: persistentvolumeclaim "{name}" not found'
VOLUME_ZONE_MISMATCH = "node(s) had no available volume zone"
CLAIM_NOT_FOUND = 'persistentvolumeclaim "{name}" not found'
VOLUME_NOT_FOUND = 'persistentvolume "{name}" not found'
STORAGE_CLASS_NOT_FOUND = 'storageclass.storage.k8s.io "{name}" not found'
CLAIM_BEING_DELETED = 'persistentvolumeclaim "{name}" is being deleted'
CLAIM_VOLUME_LOST = 'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
CLAIM_SELECTOR_TOO_LONG = (
    'persistentvolumeclaim "{name}" has {count} labels, expressions and values in its selector, '
    "more than {most}"
)
WAITING_FOR_EPHEMERAL_CLAIM = (
    'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
)
CLAIM_OF_ANOTHER_POD = "PVC {namespace}/{name} was not created for pod {namespace}/{pod} (pod is not owner)"
CLAIM_WITHOUT_NAME = "PersistentVolumeClaim had no name"
VOLUME_WITHOUT_NAME = "PersistentVolume had no name"
CLAIM_WITHOUT_VOLUME_OR_CLASS = "PersistentVolumeClaim had no pv name and storageClass name"
CLASS_WITHOUT_BINDING_MODE = 'VolumeBindingMode not set for StorageClass "{name}"'
TERM_UNREADABLE = "parsing pod: {problem}"
PRE_PREDICATE_FAILED = "plugin {plugin} pre-predicates failed {reasons}"
PROPORTION_CHECK_FAILED = "proportional of resource {resource} check failed"
NODE_GROUP_JOB_UNKNOWN = "job {job} not found in session"
NODE_GROUP_LIMIT_INVALID = "node group resource limit annotation invalid"
NODE_GROUP_LABEL_MISSING = "node group label not found"
NODE_GROUP_AFFINITY_UNSET = "node group affinity not specified"
NODE_GROUP_AFFINITY_MISMATCH = "node does not satisfy the node group affinity"
NODE_GROUP_LIMIT_EXCEEDED = "node group resource limit exceeded"
NUMA_INFO_EMPTY = "numa info is empty"
CPU_MANAGER_NOT_STATIC = "cpu manager policy isn't static"
NUMA_POLICY_DIFFERS = "task topology policy[{task}] is different with node[{node}]"
NUMA_CPUS_EMPTY = "cpu allocatable map is empty"
NUMA_UNASSIGNABLE = "container {container} cannot be assigned by numa"
REVOCABLE_ZONE_UNKNOWN = "revocable zone {zone} not support"
REVOCABLE_ZONE_CLOSED = "current time beyond revocable zone {zone}:{hours}"
REVOCABLE_NODE_NOT_ALLOWED = "not allow to dispatch to revocable node"
CPU_LOAD_TOO_HIGH = "the CPU load of the node exceeds the upper limit."
MEMORY_LOAD_TOO_HIGH = "the memory load of the node exceeds the upper limit."

# --- why a job is not valid (gang) ---
TOO_FEW_PODS_OF_TASK = "Not enough valid pods of each task for gang-scheduling"
TOO_FEW_SUB_GROUPS = "Not enough valid subGroups of each task for gang-scheduling"
TOO_FEW_TASKS_TITLE = "Not enough valid tasks for gang-scheduling"
TOO_FEW_TASKS = f"{TOO_FEW_TASKS_TITLE}, valid: {{valid}}, min: {{minimum}}"
TOO_FEW_TASKS_SUMMARY = f"{TOO_FEW_TASKS_TITLE}, min: {{minimum}}"

# --- why a job is not enqueued ---
CLUSTER_OVERUSED_TITLE = "resource in cluster is overused"
CLUSTER_OVERUSED = f"{CLUSTER_OVERUSED_TITLE}: {{resources}}"
OVERUSED = "overused {resource}"
QUEUE_QUOTA_TITLE = "queue resource quota insufficient"
QUEUE_QUOTA_INSUFFICIENT = f"{QUEUE_QUOTA_TITLE}: {{resources}}"
INSUFFICIENT_IN_QUEUE = "insufficient {resource}"
QUEUE_HAS_CHILDREN = 'queue "{queue}" has child queues and takes no jobs itself'
USE_CHILDREN = "use {children}"
QUEUE_PARENT_MISSING = 'the parent of queue "{queue}" does not exist'
CREATE_PARENT = 'create "{parent}" or change spec.parent of "{queue}"'
QUEUE_PARENT_LOOP = 'the parents of queue "{queue}" form a loop: {loop}'
BREAK_LOOP = 'set spec.parent of one of them to "root"'
QUEUE_TOO_DEEP = 'queue "{queue}" lies more than {most} levels below the root'
SET_HIGHER_PARENT = "set its spec.parent to a queue further up"
QUEUE_CUT_OFF = 'queue "{queue}" is cut off from the root: {why}'
NAMESPACE_QUOTA_TITLE = "resource quota insufficient"
NAMESPACE_QUOTA_INSUFFICIENT = (
    f"{NAMESPACE_QUOTA_TITLE}, requested: {{requested}}, used: {{used}}, limited: {{limited}}"
)

# --- why a configuration is refused ---

# --- what the queue controller tells ---
QUEUE_CLOSED_EVENT = "Close queue succeed"
QUEUE_CLOSE_FAILED = "Close queue failed for {error}"
QUEUE_OPEN_FAILED = "Open queue failed for {error}"
QUEUE_FAILED = "{action} queue failed for {error}"
QUEUE_PARENT_CLOSED = (
    "Failed to open queue {queue} because its parent queue {parent} is closing or closed. "
    "Open the parent queue first."
)
QUEUE_PARENT_NOT_FOUND = (
    'the parent queue "{parent}" of queue "{queue}" is not found: create it or change spec.parent'
)

QUEUE_ROOT_STAYS_OPEN = (
    "Queue root can not be closed, since all queues are below it, so nothing is done; close those instead"
)
COMMAND_REFUSED = "CommandRefused"
COMMAND_ELSEWHERE = (
    'Command {name} is for queue "{queue}" and is in namespace "{namespace}", so nothing is done; '
    'create it in namespace "{right}", as `vcctl queue operate` does'
)

# --- what the job controller tells ---
EXECUTE_ACTION = "ExecuteAction"
COMMAND_ISSUED = "CommandIssued"
UNKNOWN_COMMAND = "UnknownCommand"
PLUGIN_ERROR = "PluginError"
PVC_ERROR = "PVCError"
QUEUE_ERROR = "QueueError"
POD_GROUP_ERROR = "PodGroupError"
POD_GROUP_PENDING = "PodGroupPending"
FAILED_CREATE = "FailedCreate"
FAILED_DELETE = "FailedDelete"
ACTION_STARTS = "Start to execute action {action} "
ACTION_WAITS = "Execute action {action} after {delay}"
COMMAND_UNKNOWN = "Command {name} asks for {action!r}, which nobody knows, so nothing is done; use {valid}"
COMMAND_STARTS = (
    "Start to execute command {action}, and clean it up to make sure executed not more than once."
)
PLUGIN_FAILED = "Execute plugin when job add failed, err: {error}"
CLAIM_FAILED = "Failed to create PVC, err: {error}"
GROUP_FAILED = "Failed to create PodGroup, err: {error}"
GROUP_CONDITION = "PodGroup {namespace}:{job} {type}, reason: {message}"
UNKNOWN_JOB_PLUGIN = "failed to get plugin {name}"
JOB_CLAIM_NOT_FOUND = "pvc {name} is not found, the job will be in the Pending state until the PVC is created"
JOB_QUEUE_NOT_FOUND = (
    "queue {name} is not found, the job will be in the {phase} state until the queue is created"
)
WAITS_FOR_JOBS = "WaitsForJobs"
WAITS_FOR_JOBS_MESSAGE = "The job waits for {jobs} (annotation {annotation})"
AFTER_MET = "AfterMet"
AFTER_MET_MESSAGE = "The jobs that it waited for have ended as it asked for: {jobs}; its pods may start"
AFTER_FAILED = "AfterFailed"
AFTER_FAILED_MESSAGE = "The job can not start any more: it waited for {condition} of job {name}, and {why}"
AFTER_INVALID = "AfterInvalid"
AFTER_INVALID_MESSAGE = (
    "The annotation {annotation} can not be read, so the pods stay where they are: {problem}"
)
AFTER_MISSING = "AfterMissing"
AFTER_MISSING_MESSAGE = (
    "The job waits for job {name}, which does not exist in namespace {namespace}: create that, or delete this"
)
AFTER_CYCLE = "AfterCycle"
AFTER_CYCLE_MESSAGE = "The job waits for itself ({cycle}), so it never starts: delete one of these jobs"
NAME_TAKEN = "NameTaken"
NAME_TAKEN_MESSAGE = (
    '{kind} "{name}" exists already and is not of this {owner}: '
    "delete or rename it, or give the {owner} another name"
)
TOO_LARGE = "TooLarge"
REJECTED = "Rejected"
REJECTED_MESSAGE = "The API server refuses what the job needs, until the job is changed: {error}"
STATUS_REJECTED = "The API server refuses the status of the job, until the job is changed: {error}"
GROUP_NOT_CREATED = "The PodGroup cannot be created, and is tried again: {error}"
GROUP_QUEUE_NOT_OPEN = (
    "can only submit PodGroup to queue with state `Open`, queue `{queue}` status is `{state}`."
)
FAILED_RELEASE = "FailedRelease"
RELEASING_FAILED = "Error letting pods start: [{errors}]"
CREATING_FAILED = "Error creating pods: [{errors}]"
DELETING_FAILED = "Error deleting pods: [{errors}]"

# --- what the HyperNode controller tells ---
VOLCANO_NAMESPACE = "volcano-system"
SCHEDULER_CONFIG_MAP, SCHEDULER_CONFIG_KEY = "volcano-scheduler-configmap", "volcano-scheduler.conf"
"""The ConfigMap in that namespace in which Volcano's installation keeps the policy, and its key."""
DISCOVERY_CONFIG_INVALID = "DiscoveryConfigInvalid"
DISCOVERY_FAILED = "DiscoveryFailed"
HYPER_NODE_NAME_TAKEN = (
    "a HyperNode that {source} discovered should have this name, and this one is not from there: delete it, or "
    "set its label {label} to {source}"
)

# --- what the sharding controller tells ---
SHARDING_CONFIG_INVALID = "InvalidShardingConfig"
SHARDING_FIELD_IGNORED = "ShardingFieldIgnored"
SHARD_REJECTED = "The API server refuses the shard: {error}"
