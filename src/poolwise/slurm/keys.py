"""Keys of slurm.conf: those that Poolwise reads, those that would change a schedule, and all other ordinary keys.

Source: slurm.conf(5) of Slurm 22.05 to 24.05. A key that is in none of these lists is unknown, not necessarily wrong.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from poolwise.errors import InputError


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PRIORITY = (
    "PriorityCalcPeriod PriorityDecayHalfLife PriorityFavorSmall PriorityFlags PriorityMaxAge PriorityType "
    "PriorityUsageResetPeriod PriorityWeightAge PriorityWeightFairshare PriorityWeightJobSize PriorityWeightPartition "
    "PriorityWeightQOS PriorityWeightTRES FairShareDampeningFactor"
)
READ: Mapping[str, frozenset[str]] = {
    "": _words(
        "ClusterName JobRequeue Licenses OverTimeLimit PreemptExemptTime PreemptMode PreemptParameters PreemptType "
        f"SchedulerParameters SchedulerType SelectType SelectTypeParameters TopologyPlugin {_PRIORITY}"
    ),
    "nodename": _words(
        "NodeName Boards CoresPerSocket CPUs Feature Features Gres MemSpecLimit RealMemory Sockets SocketsPerBoard State "
        "ThreadsPerCore Weight"
    ),
    "partitionname": _words(
        "PartitionName Default GraceTime MaxNodes MaxTime Nodes OverSubscribe PreemptMode Priority PriorityJobFactor "
        "PriorityTier Shared State"
    ),
    "nodeset": _words("NodeSet Nodes Feature"),
}
"""First key of a line, empty for the file's own keys -> the keys that are read there."""

AFFECTS: Mapping[str, Mapping[str, str]] = {
    "": {
        "AccountingStorageEnforce": "limits of associations need a dump (--assoc), those of QOS another (--qos)",
        "BurstBufferType": "burst buffers are not modeled",
        "CompleteWait": "nodes are free as soon as a job ends",
        "PriorityWeightAssoc": "priorities of associations are not modeled",
        "PrioritySiteFactorPlugin": "the site factor is 0",
        "SchedulerTimeSlice": "jobs do not share nodes in time slices",
        "SuspendTime": "nodes are always powered up",
        "TRESBillingWeights": "usage and job size count cores",
    },
    "nodename": {
        "CoreSpecCount": "all cores of the nodes are used",
        "CpuSpecList": "all cores of the nodes are used",
    },
    "partitionname": {
        "ExclusiveUser": "jobs of several users share nodes",
        "LLN": "nodes are filled one after the other",
        "MaxCPUsPerNode": "jobs may use all CPUs of a node",
        "MaxCPUsPerSocket": "jobs may use all CPUs of a node",
        "MinNodes": "jobs below it are accepted",
        "QOS": "limits of the partition's QOS are not applied",
        "TRESBillingWeights": "usage and job size count cores",
    },
    "nodeset": {},
}
"""As `READ`: key that is not modeled -> what the simulation does instead."""

_FILE = (
    "AccountingStorageBackupHost AccountingStorageExternalHost AccountingStorageHost AccountingStorageParameters "
    "AccountingStoragePass AccountingStoragePort AccountingStorageTRES AccountingStorageType AccountingStorageUser "
    "AccountingStoreFlags AccountingStoreJobComment AcctGatherEnergyType AcctGatherFilesystemType "
    "AcctGatherInterconnectType AcctGatherNodeFreq AcctGatherProfileType AllowSpecResourcesUsage AuthAltParameters "
    "AuthAltTypes AuthInfo AuthType BackupAddr BackupController BatchStartTimeout BcastExclude BcastParameters "
    "CheckpointType CliFilterParameters CliFilterPlugins CommunicationParameters ControlAddr ControlMachine CoreSpecPlugin "
    "CpuFreqDef CpuFreqGovernors CredType CryptoType DataParserParameters DebugFlags DefaultStorageType DefCpuPerGPU "
    "DefMemPerCPU DefMemPerGPU DefMemPerNode DependencyParameters DisableRootJobs DownNodes EioTimeout EnforcePartLimits "
    "Epilog EpilogMsgTime EpilogSlurmctld EpilogTimeout ExtSensorsFreq ExtSensorsType FastSchedule FederationParameters "
    "FirstJobId FrontendName GetEnvTimeout GpuFreqDef GresTypes GroupUpdateForce GroupUpdateTime HashPlugin "
    "HealthCheckInterval HealthCheckNodeState HealthCheckProgram InactiveLimit InteractiveStepOptions "
    "JobAcctGatherFrequency JobAcctGatherParams JobAcctGatherType JobCompHost JobCompLoc JobCompParams JobCompPass "
    "JobCompPassScript JobCompPort JobCompType JobCompUser JobContainerType JobFileAppend JobSubmitPlugins "
    "KeepAliveTime KillOnBadExit KillWait LaunchParameters LaunchType LogTimeFormat MailDomain MailProg MaxArraySize "
    "MaxBatchRequeue MaxDBDMsgs MaxJobCount MaxJobId MaxMemPerCPU MaxMemPerNode MaxNodeCount MaxStepCount MaxTasksPerNode "
    "MCSParameters MCSPlugin MessageTimeout MinJobAge MpiDefault MpiParams NodeFeaturesPlugins PluginDir PlugStackConfig "
    "PowerParameters PowerPlugin PrepParameters PrepPlugins PriorityParameters "
    "PrioritySiteFactorParameters PrivateData ProctrackType Prolog PrologEpilogTimeout PrologFlags PrologSlurmctld "
    "PrologTimeout PropagatePrioProcess PropagateResourceLimits PropagateResourceLimitsExcept RebootProgram ReconfigFlags "
    "RequeueExit RequeueExitHold ResumeFailProgram ResumeProgram ResumeRate ResumeTimeout ResvEpilog ResvOverRun ResvProlog "
    "ReturnToService RoutePlugin SallocDefaultCommand SbcastParameters ScronParameters SlurmctldAddr SlurmctldDebug "
    "SlurmctldHost SlurmctldLogFile SlurmctldParameters SlurmctldPidFile SlurmctldPlugstack SlurmctldPort "
    "SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg SlurmctldSyslogDebug SlurmctldTimeout SlurmdDebug SlurmdLogFile "
    "SlurmdParameters SlurmdPidFile SlurmdPort SlurmdSpoolDir SlurmdSyslogDebug SlurmdTimeout SlurmdUser SlurmSchedLogFile "
    "SlurmSchedLogLevel SlurmUser SrunEpilog SrunPortRange SrunProlog StateSaveLocation SuspendExcNodes SuspendExcParts "
    "SuspendExcStates SuspendProgram SuspendRate SuspendTimeout SwitchParameters SwitchType TaskEpilog TaskPlugin "
    "TaskPluginParam TaskProlog TCPTimeout TLSType TmpFS TopologyParam TrackWCKey TreeWidth "
    "UnkillableStepProgram UnkillableStepTimeout UsePAM VSizeFactor WaitTime X11Parameters"
)
OTHERS: Mapping[str, frozenset[str]] = {
    "": _words(_FILE),
    "nodename": _words("BcastAddr CpuBind NodeAddr NodeHostname Port Procs Reason RestrictedCoresPerGPU TmpDisk"),
    "partitionname": _words(
        "AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind DefaultTime DefCpuPerGPU DefMemPerCPU DefMemPerGPU "
        "DefMemPerNode DenyAccounts DenyQos DisableRootJobs Hidden JobDefaults MaxMemPerCPU MaxMemPerNode "
        "OverTimeLimit PowerDownOnIdle ReqResv ResumeTimeout RootOnly SelectTypeParameters "
        "SuspendTime SuspendTimeout"
    ),
    "nodeset": _words(""),
}
"""As `READ`: ordinary keys without effect on a replayed log, in which limits and defaults of jobs are recorded."""


def known(kind: str) -> dict[str, str]:
    """Return the ordinary keys of a kind of line: key in lower case -> key as written in the manual."""
    return {name.lower(): name for name in (*READ[kind], *AFFECTS[kind], *OTHERS[kind])}


def check_key(kind: str, key: str, file: Path, line: int) -> None:
    """Raise InputError for an unknown key that resembles a key that matters."""
    if key.lower() in (ordinary := known(kind)):
        return
    matter = [name.lower() for name in (*READ[kind], *AFFECTS[kind])]
    if near := difflib.get_close_matches(key.lower(), matter, n=1, cutoff=0.85):
        problem, name = f"unknown key '{key}'", ordinary[near[0]]
        raise InputError(problem, file=file, line=line, field=key, remedy=f"did you mean {name}? Correct or remove it")
