"""Every metric.  The docs, the alert rules and the dashboard are made from this table."""

from __future__ import annotations

from typing import Final

from shmbroker.cli.metrics.metric import COUNTER, GAUGE, HISTOGRAM, Metric, Rule

BROKER: Final = ("vhost", "broker")
VHOST: Final = ("vhost",)
QUEUE: Final = ("vhost", "queue")
LINK: Final = ("vhost", "link", "kind")
NODE: Final = (*BROKER, "node")
MEMBER: Final = (*BROKER, "member")
WARNING, CRITICAL = "warning", "critical"


def gauge(
    name: str, text: str, labels: tuple[str, ...], alarming: str = "", rule: Rule | None = None,
    panel: str = "",
) -> Metric:  # fmt: skip
    return Metric(f"shmbroker_{name}", GAUGE, text, labels, alarming, rule, panel)


def counter(
    name: str, text: str, labels: tuple[str, ...], alarming: str = "", rule: Rule | None = None,
    panel: str = "",
) -> Metric:  # fmt: skip
    return Metric(f"shmbroker_{name}_total", COUNTER, text, labels, alarming, rule, panel)


def histogram(name: str, text: str, labels: tuple[str, ...], panel: str = "") -> Metric:
    return Metric(f"shmbroker_{name}_seconds", HISTOGRAM, text, labels, "", None, panel)


def rate(name: str, by: str = "queue") -> str:
    return f"sum by ({by}) (rate(shmbroker_{name}_total[5m]))"


def p99(name: str, by: str = "queue") -> str:
    return (
        f"histogram_quantile(0.99, sum by ({by}, le) (rate(shmbroker_{name}_seconds_bucket[5m])))"
    )


OF_BROKER: Final = (
    gauge("up", "1 if the process of the broker runs, 0 if not.", BROKER,
          "0: the broker does not run", Rule("BrokerDown", "shmbroker_up == 0", "1m", CRITICAL),
          "shmbroker_up"),
    gauge("stopped", "1 if the process of the broker is stopped (SIGSTOP, or a debugger).", BROKER,
          "1", Rule("BrokerStopped", "shmbroker_stopped == 1", "1m", CRITICAL)),
    gauge("broker_state", "1 for the state that the broker is in, 0 for all others.",
          (*BROKER, "state"), "`failed`",
          Rule("BrokerFailed", 'shmbroker_broker_state{state="failed"} == 1', "0m", CRITICAL)),
    gauge("broker_role", "1 for the role and policy that the broker is configured with.",
          (*BROKER, "role", "policy")),
    gauge("broker_epoch", "Epoch of the broker: a takeover raises it.", BROKER,
          "it grows often: the brokers of a node take over from each other",
          Rule("EpochChangesOften", "changes(shmbroker_broker_epoch[30m]) > 3", "0m", WARNING)),
    gauge("journal_turn_age_seconds", "Time since the last turn of the live's journal writer.",
          BROKER, "more than 10 s: the disk hangs, or the broker does",
          Rule("JournalHangs", "shmbroker_journal_turn_age_seconds > 10", "1m", CRITICAL)),
    gauge("journal_bytes", "Bytes of the files of the journal.", BROKER),
    gauge("journal_segments", "Files of the journal.", BROKER),
    gauge("store_free_bytes", "Bytes that are free on the disk of the store.", BROKER,
          "less than 1 GiB: a full disk stops the live",
          Rule("StoreNearlyFull", "shmbroker_store_free_bytes < 1073741824", "5m", WARNING)),
    gauge("shown_age_seconds", "Age of what the broker has said of this part of itself.",
          (*BROKER, "part"), "it grows: the broker does not answer"),
)

OF_NODE: Final = (
    gauge("replication_state", "1 for the state of the member in its replicated node.",
          (*BROKER, "state"),
          "`held`, `suspended`, `fenced`, `conflict`, `refused`; `alone`: there is no second copy",
          Rule("ReplicationStopped",
               'shmbroker_replication_state{state=~"held|suspended|fenced|conflict|refused"} == 1',
               "1m", CRITICAL)),
    gauge("durability_level", "1 for the level that confirms of durable queues have now.",
          (*BROKER, "level"), "`disk`: no replica is in sync",
          Rule("DurabilityFell", 'shmbroker_durability_level{level="disk"} == 1', "5m", WARNING)),
    gauge("in_sync_members", "Members on the in-sync list of the node, the live among them.",
          BROKER),
    gauge("replica_in_sync", "1 if the live counts this replica as in sync.", MEMBER, "0",
          Rule("ReplicaNotInSync", "shmbroker_replica_in_sync == 0", "5m", WARNING)),
    gauge("replica_lag_bytes", "Bytes of the journal that this replica has not confirmed.", MEMBER,
          "it grows", None, "shmbroker_replica_lag_bytes"),
    gauge("replica_lag_seconds", "Age of the oldest frame that this replica has not confirmed.",
          MEMBER, "more than 1 s",
          Rule("ReplicaLags", "shmbroker_replica_lag_seconds > 1", "1m", WARNING)),
    gauge("voters", "Voters that are configured.", BROKER),
    gauge("voters_linked", "Voters that the member has a link to.", BROKER,
          "not more than half of the voters: no vote could succeed",
          Rule("VotersMissing", "shmbroker_voters_linked * 2 <= shmbroker_voters and "
               "shmbroker_voters > 0", "1m", CRITICAL)),
    gauge("pair_state", "1 for the state of a broker of a pair.", (*BROKER, "state"), "`conflict`",
          Rule("PairConflict", 'shmbroker_pair_state{state="conflict"} == 1', "0m", CRITICAL)),
    gauge("pair_silence_seconds", "Time since the other broker of the pair was heard.", BROKER,
          "more than `failover-timeout`",
          Rule("PairSilent", "shmbroker_pair_silence_seconds > 30", "1m", WARNING)),
    gauge("queue_replica_following", "1 if the queue follows the one of the other broker.",
          (*BROKER, "queue"), "0",
          Rule("QueueReplicaStopped", "shmbroker_queue_replica_following == 0", "5m", WARNING)),
    gauge("queue_replica_lag_messages", "Messages that have come and are not shown yet.",
          (*BROKER, "queue"), "it grows"),
)

OF_CLUSTER: Final = (
    gauge("cluster_node_up", "1 if this node of the cluster is reached.", NODE, "0",
          Rule("ClusterNodeMissing", "shmbroker_cluster_node_up == 0", "1m", CRITICAL),
          "shmbroker_cluster_node_up"),
    gauge("cluster_node_backups", "Announced backups of this node.", NODE,
          "0 for a node of several members"),
    gauge("cluster_node_waiting", "Messages on their way to this node.", NODE,
          "it grows: the node does not take them", None, "shmbroker_cluster_node_waiting"),
    gauge("cluster_lives", "Lives of the cluster that count in votes.", BROKER),
    gauge("cluster_can_vote", "1 if a vote of the cluster could succeed now.", BROKER, "0",
          Rule("ClusterCannotVote", "shmbroker_cluster_can_vote == 0", "1m", CRITICAL)),
    gauge("cluster_duplicates", "Copied stores that run in the cluster.", BROKER, "not 0",
          Rule("ClusterDuplicate", "shmbroker_cluster_duplicates > 0", "0m", CRITICAL)),
)

OF_GROUPS: Final = (
    gauge("grouping_state", "1 for the state of the grouping handler of the broker.",
          (*BROKER, "state"), "all but `decides` and `asks`: new groups time out",
          Rule("GroupingStopped",
               'shmbroker_grouping_state{state!~"decides|asks"} == 1', "1m", CRITICAL)),
    gauge("groups", "Groups that have a route: where it is decided all, else those that were "
          "published here.", BROKER, "near 57,344, the most that a cluster has", None,
          "shmbroker_groups"),
    gauge("groups_unreached", "Groups of these whose node is not reached: their messages wait.",
          BROKER, "not 0"),
    gauge("groups_waiting", "Groups that wait for their first decision, and whoever publishes.",
          BROKER, "it stays above 0"),
    counter("group_proposals", "Nodes that this broker has proposed for a group.", BROKER),
    counter("group_rejections", "How often another node was decided.", BROKER),
    counter("group_timeouts", "How often nothing was decided in time, and `publish` has failed.",
            BROKER, "it grows",
            Rule("GroupingTimesOut", "increase(shmbroker_group_timeouts_total[10m]) > 0", "0m",
                 WARNING)),
)

OF_SESSIONS: Final = (
    gauge("sessions", "Sessions of programs on other hosts. `waiting`: it has lost its link, and "
          "may come back.", (*BROKER, "state"), "near 1,000, which an acceptor admits", None,
          "sum by (broker) (shmbroker_sessions)"),
)

OF_CLUSTER_LIFE: Final = (
    gauge("hosted_backups", "Backups that this broker runs for others.", BROKER),
    gauge("hosted_backup_up", "1 if another broker runs a backup for this one.", BROKER,
          "0: nobody takes over from it",
          Rule("HostedBackupMissing", "shmbroker_hosted_backup_up == 0", "5m", WARNING)),
    gauge("scale_down_messages", "Messages that a broker gives away before it ends.", BROKER),
    gauge("scale_down_moved_messages", "How many of them the other node has.", BROKER,
          "it stands still, below `shmbroker_scale_down_messages`",
          Rule("ScaleDownStands", "shmbroker_scale_down_moved_messages < "
               "shmbroker_scale_down_messages and "
               "changes(shmbroker_scale_down_moved_messages[5m]) == 0", "5m", WARNING)),
)

OF_LINKS: Final = (
    gauge("link_up", "1 if the link, bridge or agent is up.", LINK, "0",
          Rule("LinkDown", "shmbroker_link_up == 0", "5m", WARNING), "shmbroker_link_up"),
    gauge("link_waiting", "Messages in the queue of the link that the other end has not confirmed.",
          LINK, "it grows", None, "shmbroker_link_waiting"),
    counter("link_attempts", "Attempts to connect.", LINK),
    counter("link_losses", "How often the link was lost.", LINK, "it grows often",
            Rule("LinkUnstable", "increase(shmbroker_link_losses_total[30m]) > 5", "0m", WARNING)),
    counter("link_messages", "Messages that were sent.", LINK, "", None,
            rate("link_messages", "link")),
    counter("link_sent_bytes", "Bytes of these messages.", LINK),
    counter("link_confirmed", "Messages that the other end has confirmed.", LINK),
    counter("link_set_aside", "Messages that the other end has refused.", LINK, "it grows",
            Rule("LinkSetsAside", "increase(shmbroker_link_set_aside_total[10m]) > 0", "0m",
                 WARNING)),
    counter("link_credit_stalls", "How often the link had to wait for credit.", LINK),
    counter("agent_returned", "Messages of an agent that came back: nobody takes them there.",
            LINK),
    counter("agent_unclaimed", "Those of them whose publisher was gone.", LINK),
    counter("agent_dropped", "Messages of an agent that were dropped: more waited than may.",
            LINK, "it grows",
            Rule("AgentDrops", "increase(shmbroker_agent_dropped_total[10m]) > 0", "0m", WARNING)),
    histogram("link_confirm", "Time from append to confirm.", LINK, p99("link_confirm", "link")),
)

OF_VHOST: Final = (
    gauge("vhost_up", "1 if the vhost is there to be read.", VHOST, "0, on a live"),
    gauge("vhost_queues", "Queues of the vhost.", VHOST),
    gauge("vhost_durable_queues", "Durable queues of the vhost.", VHOST),
    gauge("vhost_journal_written", "1 if a process writes the journal of the vhost.", VHOST,
          "0, with durable queues: nothing is confirmed",
          Rule("NobodyWritesTheJournal", "shmbroker_vhost_journal_written == 0 and "
               "shmbroker_vhost_durable_queues > 0", "1m", CRITICAL)),
    gauge("vhost_paged_by_broker", "1 if a process pages the queues of the vhost.", VHOST),
    gauge("vhost_participants", "Connections of programs, by their state.", (*VHOST, "state"),
          "`dead` stays: nobody repairs the vhost",
          Rule("DeadParticipants", 'shmbroker_vhost_participants{state="dead"} > 0', "5m",
               WARNING)),
    gauge("vhost_error_kinds", "Distinct errors in the log of the vhost.", VHOST),
    gauge("vhost_last_error_timestamp_seconds", "When the last error was noted, 0: never.", VHOST,
          "within the last 10 minutes",
          Rule("RecentError", "time() - shmbroker_vhost_last_error_timestamp_seconds < 600", "0m",
               WARNING)),
    gauge("vhost_arena_bytes", "What the arena, the memory of all messages, may grow to.", VHOST),
    gauge("vhost_arena_used_bytes", "What of the arena is in use.", VHOST,
          "more than 90 % of `shmbroker_vhost_arena_bytes`: producers will have to wait",
          Rule("ArenaNearlyFull",
               "shmbroker_vhost_arena_used_bytes > 0.9 * shmbroker_vhost_arena_bytes", "1m",
               WARNING),
          "shmbroker_vhost_arena_used_bytes / shmbroker_vhost_arena_bytes"),
    gauge("shared_memory_free_bytes", "Bytes that are free in /dev/shm.", VHOST,
          "less than 64 MiB",
          Rule("SharedMemoryNearlyFull", "shmbroker_shared_memory_free_bytes < 67108864", "1m",
               CRITICAL)),
)

OF_QUEUES: Final = (
    gauge("queue_depth", "Messages that are there, taken or not.", QUEUE, "near the slots", None,
          "topk(20, shmbroker_queue_depth)"),
    gauge("queue_taken", "Messages in the hands of consumers.", QUEUE),
    gauge("queue_slots", "Messages that the queue holds in memory.", QUEUE,
          "the depth is more than 90 % of it",
          Rule("QueueNearlyFull", "shmbroker_queue_depth > 0.9 * shmbroker_queue_slots and on "
               "(vhost, queue) shmbroker_queue_paged == 0", "5m", WARNING)),
    gauge("queue_oldest_age_seconds", "Age of the first message in the ring, 0: there is none.",
          QUEUE, "more than your consumers may take", None,
          "topk(20, shmbroker_queue_oldest_age_seconds)"),
    counter("queue_published", "Messages that were published.", QUEUE, "", None,
            f"topk(20, {rate('queue_published')})"),
    counter("queue_delivered", "Deliveries to consumers.", QUEUE, "", None,
            f"topk(20, {rate('queue_delivered')})"),
    counter("queue_acked", "Messages that were acknowledged.", QUEUE),
    counter("queue_redelivered", "Messages that came back from a consumer.", QUEUE,
            "it grows as fast as the deliveries: a consumer fails"),
    counter("queue_expired", "Messages whose time to live has passed.", QUEUE),
    counter("queue_dead_lettered", "Messages that were rejected, or delivered too often.", QUEUE,
            "it grows",
            Rule("DeadLetters", "increase(shmbroker_queue_dead_lettered_total[10m]) > 0", "0m",
                 WARNING)),
    counter("queue_dropped", "Messages that were dropped: oldest of a full queue, purged, damaged.",
            QUEUE, "it grows, and the queue is not meant to drop"),
    counter("queue_replaced", "Messages that were replaced by newer ones of the same key.", QUEUE),
    counter("queue_duplicates", "Messages that were not published, because they were before.",
            QUEUE),
    counter("queue_slow_consumers", "How often a consumer was found to be slow.", QUEUE),
    gauge("queue_set_aside", "Messages that wait because their dead-letter queue is full.", QUEUE,
          "not 0", Rule("SetAside", "shmbroker_queue_set_aside > 0", "5m", WARNING)),
    gauge("queue_scheduled", "Messages that are not to be delivered yet.", QUEUE),
    gauge("queue_paged", "Messages that wait in page files, or on their way there.", QUEUE),
    gauge("queue_paged_bytes", "Bytes in page files.", QUEUE),
    gauge("queue_paused", "1 if the queue is paused.", QUEUE, "1, and nobody has meant it"),
    gauge("queue_consumers", "Participants that take from the queue.", QUEUE,
          "0, with messages",
          Rule("QueueWithoutConsumers", "shmbroker_queue_depth > 0 and on (vhost, queue) "
               "shmbroker_queue_consumers == 0", "15m", WARNING)),
    gauge("queue_producers", "Participants that publish to the queue.", QUEUE),
    histogram("queue_wait", "Time from publish to take, while times are recorded.", QUEUE,
              f"topk(20, {p99('queue_wait')})"),
    histogram("queue_hold", "Time from take to acknowledge, while times are recorded.", QUEUE),
    histogram("queue_durable", "Time from publish to the disk, while times are recorded.", QUEUE),
)

PARTS: Final = {
    "Broker": OF_BROKER,
    "Replication, pairs and queue replicas": OF_NODE,
    "Cluster": OF_CLUSTER,
    "Message groups in a cluster": OF_GROUPS,
    "Hosted backups, and scaling down": OF_CLUSTER_LIFE,
    "Links, bridges, networks and agents": OF_LINKS,
    "Programs on other hosts": OF_SESSIONS,
    "Vhost": OF_VHOST,
    "Queues": OF_QUEUES,
}
METRICS: Final = {each.name: each for part in PARTS.values() for each in part}
