//! Every field of `AWSMachineProviderConfig`, with its type.

use crate::admission::shape::Shape;

pub const FIELDS: &[(&str, Shape)] = &[
    ("apiVersion", Shape::Text),
    ("kind", Shape::Text),
    ("metadata", Shape::Open(&[])),
    ("ami", REFERENCE),
    ("instanceType", Shape::Text),
    ("cpuOptions", Shape::Object(&[("confidentialCompute", Shape::Text)])),
    ("tags", TAGS),
    ("iamInstanceProfile", REFERENCE),
    ("userDataSecret", SECRET),
    ("credentialsSecret", SECRET),
    ("keyName", Shape::Text),
    ("deviceIndex", Shape::Integer64),
    ("publicIp", Shape::Boolean),
    ("networkInterfaceType", Shape::Text),
    ("securityGroups", Shape::List(&REFERENCE)),
    ("subnet", REFERENCE),
    ("placement", PLACEMENT),
    ("loadBalancers", Shape::List(&LOAD_BALANCER)),
    ("blockDevices", Shape::List(&BLOCK_DEVICE)),
    ("spotMarketOptions", Shape::Object(&[("maxPrice", Shape::Text)])),
    ("marketType", Shape::Text),
    ("capacityReservationId", Shape::Text),
    ("metadataServiceOptions", Shape::Object(&[("authentication", Shape::Text)])),
    ("placementGroupName", Shape::Text),
    ("placementGroupPartition", Shape::Integer32),
];

const REFERENCE: Shape =
    Shape::Object(&[("id", Shape::Text), ("arn", Shape::Text), ("filters", Shape::List(&FILTER))]);

const FILTER: Shape =
    Shape::Object(&[("name", Shape::Text), ("values", Shape::List(&Shape::Text))]);

const SECRET: Shape = Shape::Object(&[("name", Shape::Text)]);

const TAGS: Shape = Shape::List(&Shape::Object(&[("name", Shape::Text), ("value", Shape::Text)]));

const PLACEMENT: Shape = Shape::Object(&[
    ("region", Shape::Text),
    ("availabilityZone", Shape::Text),
    ("tenancy", Shape::Text),
    (
        "host",
        Shape::Object(&[
            ("affinity", Shape::Text),
            (
                "dedicatedHost",
                Shape::Object(&[
                    ("allocationStrategy", Shape::Text),
                    ("id", Shape::Text),
                    ("dynamicHostAllocation", Shape::Object(&[("tags", TAGS)])),
                ]),
            ),
        ]),
    ),
]);

const LOAD_BALANCER: Shape = Shape::Object(&[("name", Shape::Text), ("type", Shape::Text)]);

const BLOCK_DEVICE: Shape = Shape::Object(&[
    ("deviceName", Shape::Text),
    (
        "ebs",
        Shape::Object(&[
            ("deleteOnTermination", Shape::Boolean),
            ("encrypted", Shape::Boolean),
            ("kmsKey", REFERENCE),
            ("iops", Shape::Integer64),
            ("throughputMib", Shape::Integer32),
            ("volumeSize", Shape::Integer64),
            ("volumeType", Shape::Text),
        ]),
    ),
    ("noDevice", Shape::Text),
    ("virtualName", Shape::Text),
]);
