//! Which kinds does the server know, and in what do they differ?
//!
//! One row for each served resource. Whatever a row does not say is the same for all kinds.

/// Whether objects live in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Namespaced,
    Cluster,
}

/// What the server knows of the kind's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// A type of Kubernetes' own; unknown fields are dropped, some fields have defaults.
    BuiltIn,
    /// A custom resource, with the text of its definition.
    Custom(&'static str),
    /// A custom resource whose schema keeps everything.
    CustomUnchecked,
}

/// When `metadata.generation` grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// The kind has none.
    Absent,
    /// With each change of the spec. For custom resources: of anything but metadata and status.
    Counted,
}

/// What DELETE answers when the object is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteAnswer {
    Status,
    Object,
}

/// One served resource.
#[derive(Debug)]
pub struct Kind {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub scope: Scope,
    pub fields: Fields,
    pub generation: Generation,
    pub has_status: bool,
    pub has_scale: bool,
    /// Whether its status has a part that says whether it is approved.
    pub has_approval: bool,
    /// A PUT without a resourceVersion overwrites whatever is there.
    pub unconditional_update: bool,
    /// A PUT of an absent object creates it.
    pub create_on_update: bool,
    pub delete_answer: DeleteAnswer,
    /// Field selectors besides `metadata.name` and `metadata.namespace`.
    pub selectable_fields: &'static [&'static str],
    /// The words of the refusal of another field selector.
    pub field_refusal: FieldRefusal,
    /// The kind whose objects this one shows in other words.
    pub shows: Option<(&'static str, &'static str)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldRefusal {
    /// Kinds with a list of their own.
    NotSupported,
    /// Kinds without one.
    NotKnown,
}

const BASE: Kind = Kind {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    scope: Scope::Namespaced,
    fields: Fields::BuiltIn,
    generation: Generation::Absent,
    has_status: false,
    has_scale: false,
    has_approval: false,
    unconditional_update: true,
    create_on_update: false,
    delete_answer: DeleteAnswer::Status,
    selectable_fields: &[],
    field_refusal: FieldRefusal::NotKnown,
    shows: None,
};

const CUSTOM: Kind = Kind {
    generation: Generation::Counted,
    has_status: true,
    unconditional_update: false,
    field_refusal: FieldRefusal::NotSupported,
    ..BASE
};

const WORKLOAD: Kind =
    Kind { group: "apps", generation: Generation::Counted, has_status: true, ..BASE };

const CLUSTER_API: Kind = Kind { group: "cluster.x-k8s.io", version: "v1beta2", ..CUSTOM };

const INFRASTRUCTURE: Kind = Kind {
    group: "infrastructure.cluster.x-k8s.io",
    fields: Fields::CustomUnchecked,
    ..CLUSTER_API
};

const EVENT_FIELDS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

/// Every resource that is served.
pub static KINDS: &[Kind] = &[
    Kind {
        kind: "Namespace",
        plural: "namespaces",
        scope: Scope::Cluster,
        has_status: true,
        delete_answer: DeleteAnswer::Object,
        selectable_fields: &["status.phase"],
        field_refusal: FieldRefusal::NotSupported,
        ..BASE
    },
    Kind {
        kind: "Node",
        plural: "nodes",
        scope: Scope::Cluster,
        has_status: true,
        selectable_fields: &["spec.unschedulable"],
        field_refusal: FieldRefusal::NotSupported,
        ..BASE
    },
    Kind {
        kind: "Pod",
        plural: "pods",
        has_status: true,
        generation: Generation::Counted,
        delete_answer: DeleteAnswer::Object,
        selectable_fields: &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        field_refusal: FieldRefusal::NotSupported,
        ..BASE
    },
    Kind {
        kind: "Secret",
        plural: "secrets",
        selectable_fields: &["type"],
        field_refusal: FieldRefusal::NotSupported,
        ..BASE
    },
    Kind { kind: "ConfigMap", plural: "configmaps", ..BASE },
    Kind {
        kind: "Event",
        plural: "events",
        create_on_update: true,
        selectable_fields: EVENT_FIELDS,
        field_refusal: FieldRefusal::NotSupported,
        ..BASE
    },
    Kind {
        group: "events.k8s.io",
        kind: "Event",
        plural: "events",
        create_on_update: true,
        selectable_fields: EVENT_FIELDS,
        field_refusal: FieldRefusal::NotSupported,
        shows: Some(("", "events")),
        ..BASE
    },
    Kind {
        group: "policy",
        kind: "PodDisruptionBudget",
        plural: "poddisruptionbudgets",
        has_status: true,
        generation: Generation::Counted,
        unconditional_update: false,
        ..BASE
    },
    Kind {
        group: "coordination.k8s.io",
        kind: "Lease",
        plural: "leases",
        unconditional_update: false,
        create_on_update: true,
        ..BASE
    },
    Kind {
        group: "certificates.k8s.io",
        kind: "CertificateSigningRequest",
        plural: "certificatesigningrequests",
        scope: Scope::Cluster,
        has_status: true,
        has_approval: true,
        selectable_fields: &["spec.signerName"],
        field_refusal: FieldRefusal::NotSupported,
        ..BASE
    },
    Kind {
        group: "machine.openshift.io",
        version: "v1beta1",
        kind: "Machine",
        plural: "machines",
        fields: Fields::Custom(include_str!(
            "../../../../deploy/crds/machine.openshift.io_machines.yaml"
        )),
        ..CUSTOM
    },
    Kind {
        group: "machine.openshift.io",
        version: "v1beta1",
        kind: "MachineSet",
        plural: "machinesets",
        has_scale: true,
        fields: Fields::Custom(include_str!(
            "../../../../deploy/crds/machine.openshift.io_machinesets.yaml"
        )),
        ..CUSTOM
    },
    Kind {
        group: "machine.openshift.io",
        version: "v1beta1",
        kind: "MachineHealthCheck",
        plural: "machinehealthchecks",
        fields: Fields::Custom(include_str!(
            "../../../../deploy/crds/machine.openshift.io_machinehealthchecks.yaml"
        )),
        ..CUSTOM
    },
    Kind {
        group: "machinemaintenance.managed.openshift.io",
        version: "v1alpha1",
        kind: "MachineMaintenance",
        plural: "machinemaintenances",
        fields: Fields::Custom(include_str!(
            "../../../../deploy/crds/machinemaintenance.managed.openshift.io_machinemaintenances.yaml"
        )),
        ..CUSTOM
    },
    Kind {
        group: "machinist.dev",
        version: "v1alpha1",
        kind: "MaintenancePolicy",
        plural: "maintenancepolicies",
        scope: Scope::Cluster,
        fields: Fields::Custom(include_str!(
            "../../../../deploy/crds/machinist.dev_maintenancepolicies.yaml"
        )),
        ..CUSTOM
    },
    Kind { kind: "DaemonSet", plural: "daemonsets", ..WORKLOAD },
    Kind { kind: "Deployment", plural: "deployments", has_scale: true, ..WORKLOAD },
    Kind { kind: "ReplicaSet", plural: "replicasets", has_scale: true, ..WORKLOAD },
    Kind { kind: "StatefulSet", plural: "statefulsets", has_scale: true, ..WORKLOAD },
    Kind {
        group: "config.openshift.io",
        kind: "Infrastructure",
        plural: "infrastructures",
        scope: Scope::Cluster,
        fields: Fields::CustomUnchecked,
        ..CUSTOM
    },
    Kind {
        kind: "Cluster",
        plural: "clusters",
        fields: Fields::Custom(include_str!(
            "../../../../deploy/crds/cluster-api/cluster.x-k8s.io_clusters.yaml"
        )),
        ..CLUSTER_API
    },
    Kind {
        kind: "Machine",
        plural: "machines",
        fields: Fields::Custom(include_str!(
            "../../../../deploy/crds/cluster-api/cluster.x-k8s.io_machines.yaml"
        )),
        ..CLUSTER_API
    },
    Kind {
        kind: "MachineSet",
        plural: "machinesets",
        has_scale: true,
        fields: Fields::Custom(include_str!(
            "../../../../deploy/crds/cluster-api/cluster.x-k8s.io_machinesets.yaml"
        )),
        ..CLUSTER_API
    },
    Kind {
        kind: "MachineDeployment",
        plural: "machinedeployments",
        has_scale: true,
        fields: Fields::Custom(include_str!(
            "../../../../deploy/crds/cluster-api/cluster.x-k8s.io_machinedeployments.yaml"
        )),
        ..CLUSTER_API
    },
    Kind {
        kind: "MachineHealthCheck",
        plural: "machinehealthchecks",
        fields: Fields::Custom(include_str!(
            "../../../../deploy/crds/cluster-api/cluster.x-k8s.io_machinehealthchecks.yaml"
        )),
        ..CLUSTER_API
    },
    Kind {
        kind: "MachineDrainRule",
        plural: "machinedrainrules",
        fields: Fields::Custom(include_str!(
            "../../../../deploy/crds/cluster-api/cluster.x-k8s.io_machinedrainrules.yaml"
        )),
        ..CLUSTER_API
    },
    // What the providers of Cluster API bring, played by an actor.
    Kind { kind: "SimMachine", plural: "simmachines", ..INFRASTRUCTURE },
    Kind { kind: "SimMachineTemplate", plural: "simmachinetemplates", ..INFRASTRUCTURE },
    Kind {
        group: "bootstrap.cluster.x-k8s.io",
        kind: "SimConfig",
        plural: "simconfigs",
        ..INFRASTRUCTURE
    },
    Kind {
        group: "bootstrap.cluster.x-k8s.io",
        kind: "SimConfigTemplate",
        plural: "simconfigtemplates",
        ..INFRASTRUCTURE
    },
    Kind {
        group: "controlplane.cluster.x-k8s.io",
        kind: "SimControlPlane",
        plural: "simcontrolplanes",
        ..INFRASTRUCTURE
    },
    Kind {
        group: "apiextensions.k8s.io",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
        scope: Scope::Cluster,
        fields: Fields::CustomUnchecked,
        ..CUSTOM
    },
    Kind {
        kind: "PersistentVolume",
        plural: "persistentvolumes",
        scope: Scope::Cluster,
        has_status: true,
        ..BASE
    },
    Kind {
        group: "storage.k8s.io",
        kind: "VolumeAttachment",
        plural: "volumeattachments",
        scope: Scope::Cluster,
        has_status: true,
        ..BASE
    },
];

/// A served resource and where its objects are kept.
#[derive(Clone, Copy, Debug)]
pub struct KindRef {
    pub(super) collection: usize,
    pub kind: &'static Kind,
}

impl PartialEq for KindRef {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.kind, other.kind)
    }
}

impl Eq for KindRef {}

impl KindRef {
    /// The resource with this group and plural name.
    #[must_use]
    pub fn find(group: &str, plural: &str) -> Option<Self> {
        let position =
            KINDS.iter().position(|kind| kind.group == group && kind.plural == plural)?;
        let kind = KINDS.get(position)?;
        let collection = match kind.shows {
            None => position,
            Some((group, plural)) => {
                KINDS.iter().position(|other| other.group == group && other.plural == plural)?
            }
        };
        Some(Self { collection, kind })
    }

    /// The resource of a type.
    #[must_use]
    pub fn of<K: kube::Resource<DynamicType = ()>>() -> Option<Self> {
        Self::find(&K::group(&()), &K::plural(&()))
    }

    /// The resource that an `apiVersion` and a `kind` name.
    #[must_use]
    pub fn of_names(api_version: &str, kind: &str) -> Option<Self> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let found = KINDS.iter().find(|candidate| {
            candidate.group == group && candidate.version == version && candidate.kind == kind
        })?;
        Self::find(found.group, found.plural)
    }

    /// The resources that keep objects of their own.
    pub(super) fn stored() -> impl Iterator<Item = Self> {
        KINDS
            .iter()
            .enumerate()
            .filter(|(_, kind)| kind.shows.is_none())
            .map(|(collection, kind)| Self { collection, kind })
    }
}

impl Kind {
    /// Group and version, as in an object's `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The resource's name in messages.
    #[must_use]
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.to_owned()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// The kind's name in messages.
    #[must_use]
    pub fn group_kind(&self) -> String {
        if self.group.is_empty() {
            self.kind.to_owned()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }

    /// Whether it is one of Cluster API's own kinds, whose plurals the Machine API has as well.
    #[must_use]
    pub fn is_of_cluster_api(&self) -> bool {
        self.group == CLUSTER_API.group
    }

    pub(super) const fn is_custom(&self) -> bool {
        matches!(self.fields, Fields::Custom(_) | Fields::CustomUnchecked)
    }
}
