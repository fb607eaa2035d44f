//! Which class does each error code of AWS have?
//!
//! A table by code, never by words. A code that is in no table is `Unknown`, or `Transient` where
//! the status is a 5xx: never `InvalidConfiguration`, which is terminal.

use super::Subject;
use crate::ErrorClass;

/// The class of an error code, or of a bare status.
pub(in crate::aws) fn class_of(
    code: Option<&str>,
    status: Option<u16>,
    subject: Subject,
) -> ErrorClass {
    if let Some(class) = code.and_then(|code| class_of_code(code, subject)) {
        return class;
    }
    match status {
        Some(429) => ErrorClass::Throttled,
        Some(401 | 403) => ErrorClass::Unauthorized,
        Some(500..=599) => ErrorClass::Transient,
        _ => ErrorClass::Unknown,
    }
}

/// Whether the code says that a policy lacks a permission, rather than that the caller is not known.
pub(super) fn denies_a_permission(code: &str) -> bool {
    matches!(
        bare(code),
        "UnauthorizedOperation"
            | "AccessDenied"
            | "AccessDeniedException"
            | "AWS.SimpleQueueService.AccessDenied"
    )
}

/// Old endpoints and some stand-ins prefix the code with the guilty side.
fn bare(code: &str) -> &str {
    code.strip_prefix("Client.").or_else(|| code.strip_prefix("Server.")).unwrap_or(code)
}

fn class_of_code(code: &str, subject: Subject) -> Option<ErrorClass> {
    let code = bare(code);
    let class = match code {
        "RequestLimitExceeded"
        | "Throttling"
        | "ThrottlingException"
        | "ThrottledException"
        | "RequestThrottled"
        | "RequestThrottledException"
        | "EC2ThrottledException"
        | "TooManyRequestsException"
        | "BandwidthLimitExceeded"
        | "KmsThrottled"
        | "OverLimit"
        | "SlowDown" => ErrorClass::Throttled,
        // A reservation that has not begun yet, or a host that is full, has room another time.
        "InsufficientInstanceCapacity"
        | "InsufficientHostCapacity"
        | "InsufficientCapacity"
        | "InsufficientCapacityOnHost"
        | "InsufficientReservedInstanceCapacity"
        | "InsufficientFreeAddressesInSubnet"
        | "InsufficientAddressCapacity"
        | "InsufficientVolumeCapacity"
        | "InvalidCapacityReservationState"
        | "MaxScheduledInstanceCapacityExceeded"
        | "ReservationCapacityExceeded"
        | "UnavailableHostRequirements"
        | "UnfulfillableCapacity"
        | "SpotMaxPriceTooLow" => ErrorClass::InsufficientCapacity,
        // The request itself asks for too much of one thing: no quota of the account.
        "TagLimitExceeded"
        | "FilterLimitExceeded"
        | "RequestResourceCountExceeded"
        | "SecurityGroupsPerInstanceLimitExceeded"
        | "SecurityGroupsPerInterfaceLimitExceeded" => ErrorClass::InvalidConfiguration,
        // Besides these, everything that ends in LimitExceeded: instances, vCPUs, volumes, hosts.
        "MaxSpotInstanceCountExceeded"
        | "ResourceCountExceeded"
        | "ReservedInstancesCountExceeded"
        | "TooManyTargets"
        | "TooManyRegistrationsForTargetId" => ErrorClass::QuotaExceeded,
        "UnauthorizedOperation"
        | "Blocked"
        | "OptInRequired"
        | "PendingVerification"
        | "AccessDenied"
        | "AccessDeniedException"
        | "AWS.SimpleQueueService.AccessDenied"
        | "InvalidClientTokenId"
        | "InvalidAccessKeyId"
        | "SignatureDoesNotMatch"
        | "MissingAuthenticationToken"
        | "MissingAuthenticationTokenException"
        | "IncompleteSignature"
        | "InvalidSecurity"
        | "InvalidSecurity.RequestHasExpired"
        | "InvalidHttpAuthHeader"
        | "ExpiredToken"
        | "ExpiredTokenException"
        | "RequestExpired"
        | "UnrecognizedClientException"
        | "NotAuthorized"
        | "OperationNotPermitted"
        | "RegionDisabledException"
        | "InvalidIdentityToken"
        | "IDPRejectedClaim" => ErrorClass::Unauthorized,
        // The second says that the token's instance is gone: like a mismatch, the token is spent.
        "IdempotentParameterMismatch"
        | "IdempotentParameterMismatchException"
        | "IdempotentInstanceTerminated" => ErrorClass::TokenMismatch,
        "InternalError"
        | "InternalFailure"
        | "InternalServerError"
        | "ServerInternal"
        | "Unavailable"
        | "ServiceUnavailable"
        | "RequestTimeout"
        | "RequestTimeoutException"
        | "RetryableError"
        | "PriorRequestNotComplete"
        | "IDPCommunicationError"
        | "ConcurrentTagAccess"
        | "IncorrectInstanceState"
        | "IncorrectState"
        | "InvalidState"
        | "InvalidHostState"
        | "InvalidNextToken"
        | "InvalidPaginationToken" => ErrorClass::Transient,
        // The endpoint does not know the action, or the SDK and it disagree on the wire: nothing
        // that a providerSpec could mend.
        "DryRunOperation"
        | "InvalidAction"
        | "InvalidCharacter"
        | "InvalidQueryParameter"
        | "MalformedQueryString"
        | "MissingAction"
        | "UnknownAction"
        | "UnsupportedProtocol" => ErrorClass::Unknown,
        "BootForVolumeTypeUnsupported"
        | "EncryptedVolumesNotSupported"
        | "InstanceCreditSpecification.NotSupported"
        | "MissingParameter"
        | "MissingInput"
        | "NonEBSInstance"
        | "TagPolicyViolation"
        | "UnknownParameter"
        | "UnknownVolumeType"
        | "Unsupported"
        | "UnsupportedOperation"
        | "UnsupportedException"
        | "UnsupportedHibernationConfiguration"
        | "UnsupportedInstanceAttribute"
        | "UnsupportedTenancy"
        | "UnsupportedHostConfiguration"
        | "UnsupportedInstanceTypeOnHost"
        | "ValidationError"
        | "VolumeTypeNotAvailableInZone"
        | "VPCIdNotSpecified"
        | "VPCResourceNotSpecified"
        | "ZonesMismatched" => refused_for_ever(subject),
        code => return class_of_code_family(code, subject),
    };
    Some(class)
}

/// Families of codes that AWS extends with every new kind of thing.
fn class_of_code_family(code: &str, subject: Subject) -> Option<ErrorClass> {
    if code.starts_with("AuthFailure") {
        return Some(ErrorClass::Unauthorized);
    }
    if code.ends_with("LimitExceeded") {
        return Some(ErrorClass::QuotaExceeded);
    }
    let names_a_missing_thing = code.ends_with("NotFound")
        || code.ends_with(".Malformed")
        || matches!(code, "QueueDoesNotExist" | "AWS.SimpleQueueService.NonExistentQueue");
    match subject {
        // An id that cannot even be read belongs to no instance.
        Subject::Instance if names_a_missing_thing || code == "InvalidInstanceID" => {
            Some(ErrorClass::NotFound)
        }
        Subject::Registration | Subject::Queue if names_a_missing_thing => {
            Some(ErrorClass::NotFound)
        }
        Subject::LaunchInput if names_a_missing_thing => Some(ErrorClass::InvalidConfiguration),
        Subject::Instance | Subject::LaunchInput | Subject::Registration | Subject::Queue => {
            code.starts_with("Invalid").then_some(refused_for_ever(subject))
        }
    }
}

/// A load balancer or a queue that does not take us is no reason to give a Machine up.
fn refused_for_ever(subject: Subject) -> ErrorClass {
    match subject {
        Subject::Instance | Subject::LaunchInput => ErrorClass::InvalidConfiguration,
        Subject::Registration | Subject::Queue => ErrorClass::Unknown,
    }
}

/// The field of the providerSpec that a code is about.
pub(super) fn field_of(code: &str) -> &'static str {
    const FIELDS: [(&str, &str); 23] = [
        ("InvalidAMI", "providerSpec.ami"),
        ("InvalidSubnet", "providerSpec.subnet"),
        ("InvalidGroup", "providerSpec.securityGroups"),
        ("InvalidSecurityGroup", "providerSpec.securityGroups"),
        ("SecurityGroups", "providerSpec.securityGroups"),
        ("InvalidKeyPair", "providerSpec.keyName"),
        ("InvalidKey", "providerSpec.keyName"),
        ("InvalidIamInstanceProfile", "providerSpec.iamInstanceProfile"),
        ("InvalidCapacityReservation", "providerSpec.capacityReservationId"),
        ("InvalidPlacementGroup", "providerSpec.placementGroupName"),
        ("InvalidBlockDevice", "providerSpec.blockDevices"),
        ("InvalidVolume", "providerSpec.blockDevices"),
        ("InvalidSnapshot", "providerSpec.blockDevices"),
        ("VolumeType", "providerSpec.blockDevices"),
        ("UnknownVolumeType", "providerSpec.blockDevices"),
        ("InvalidInstanceType", "providerSpec.instanceType"),
        ("InvalidHost", "providerSpec.placement.host"),
        ("InvalidAffinity", "providerSpec.placement.host.affinity"),
        ("InvalidTenancy", "providerSpec.placement.tenancy"),
        ("InvalidZone", "providerSpec.placement.availabilityZone"),
        ("InvalidAvailabilityZone", "providerSpec.placement.availabilityZone"),
        ("InvalidUserData", "providerSpec.userDataSecret"),
        ("Tag", "providerSpec.tags"),
    ];
    FIELDS
        .iter()
        .find(|(prefix, _)| code.starts_with(prefix))
        .map_or("providerSpec", |(_, field)| field)
}

#[cfg(test)]
mod tests {
    use super::{
        ErrorClass::{
            InsufficientCapacity, InvalidConfiguration, NotFound, QuotaExceeded, Throttled,
            TokenMismatch, Transient, Unauthorized, Unknown,
        },
        *,
    };

    /// The code, its status, and its class for an instance, a launch and a load balancer.
    #[test]
    fn codes_have_the_class_that_decides_the_policy() {
        let same = |code, status, class| (code, status, [class; 3]);
        let wrong = |code| (code, 400, [InvalidConfiguration, InvalidConfiguration, Unknown]);
        let missing = |code| (code, 400, [NotFound, InvalidConfiguration, NotFound]);
        let table = [
            same("RequestLimitExceeded", 503, Throttled),
            same("Client.RequestLimitExceeded", 503, Throttled),
            same("Throttling", 400, Throttled),
            same("ThrottlingException", 400, Throttled),
            same("InsufficientInstanceCapacity", 500, InsufficientCapacity),
            same("InsufficientHostCapacity", 500, InsufficientCapacity),
            same("InsufficientCapacityOnHost", 400, InsufficientCapacity),
            same("InsufficientReservedInstanceCapacity", 500, InsufficientCapacity),
            same("InsufficientFreeAddressesInSubnet", 400, InsufficientCapacity),
            same("InsufficientVolumeCapacity", 500, InsufficientCapacity),
            same("InvalidCapacityReservationState", 400, InsufficientCapacity),
            same("ReservationCapacityExceeded", 400, InsufficientCapacity),
            same("UnavailableHostRequirements", 400, InsufficientCapacity),
            same("SpotMaxPriceTooLow", 400, InsufficientCapacity),
            same("InstanceLimitExceeded", 400, QuotaExceeded),
            same("VcpuLimitExceeded", 400, QuotaExceeded),
            same("VolumeLimitExceeded", 400, QuotaExceeded),
            same("AddressLimitExceeded", 400, QuotaExceeded),
            same("HostLimitExceeded", 400, QuotaExceeded),
            same("NetworkInterfaceLimitExceeded", 400, QuotaExceeded),
            same("MaxIOPSLimitExceeded", 400, QuotaExceeded),
            same("MaxSpotInstanceCountExceeded", 400, QuotaExceeded),
            same("TooManyTargets", 400, QuotaExceeded),
            same("UnauthorizedOperation", 403, Unauthorized),
            same("AccessDenied", 403, Unauthorized),
            same("AccessDeniedException", 400, Unauthorized),
            same("AuthFailure", 401, Unauthorized),
            same("AuthFailure.ServiceLinkedRoleCreationNotPermitted", 403, Unauthorized),
            same("OptInRequired", 401, Unauthorized),
            same("Blocked", 403, Unauthorized),
            same("PendingVerification", 400, Unauthorized),
            same("InvalidClientTokenId", 403, Unauthorized),
            same("SignatureDoesNotMatch", 403, Unauthorized),
            same("ExpiredToken", 400, Unauthorized),
            same("RequestExpired", 400, Unauthorized),
            same("RegionDisabledException", 403, Unauthorized),
            same("OperationNotPermitted", 400, Unauthorized),
            same("IdempotentParameterMismatch", 400, TokenMismatch),
            same("IdempotentInstanceTerminated", 400, TokenMismatch),
            same("IncorrectInstanceState", 400, Transient),
            same("InternalError", 500, Transient),
            same("Unavailable", 503, Transient),
            same("RetryableError", 400, Transient),
            same("SomethingNew", 500, Transient),
            same("SomethingNew", 400, Unknown),
            same("InvalidAction", 400, Unknown),
            same("MalformedQueryString", 404, Unknown),
            missing("InvalidInstanceID.NotFound"),
            missing("InvalidInstanceID.Malformed"),
            missing("InvalidSubnetID.NotFound"),
            missing("InvalidAMIID.NotFound"),
            missing("InvalidGroup.NotFound"),
            missing("InvalidHostID.NotFound"),
            missing("LoadBalancerNotFound"),
            missing("TargetGroupNotFound"),
            wrong("InvalidAMIID.Unavailable"),
            wrong("InvalidParameterValue"),
            wrong("InvalidParameterCombination"),
            wrong("MissingParameter"),
            wrong("Unsupported"),
            wrong("UnsupportedOperation"),
            wrong("InvalidTarget"),
            same("TagLimitExceeded", 400, InvalidConfiguration),
            same("FilterLimitExceeded", 400, InvalidConfiguration),
        ];
        let subjects = [Subject::Instance, Subject::LaunchInput, Subject::Registration];
        for (code, status, classes) in table {
            for (subject, class) in subjects.into_iter().zip(classes) {
                let found = class_of(Some(code), Some(status), subject);
                assert_eq!(found, class, "{code} for {subject:?}");
            }
        }
        assert_eq!(class_of(None, Some(429), Subject::Instance), Throttled);
        assert_eq!(class_of(None, Some(403), Subject::Instance), Unauthorized);
        assert_eq!(class_of(None, Some(502), Subject::Instance), Transient);
        assert_eq!(class_of(None, None, Subject::Instance), Unknown);
        let no_queue = "AWS.SimpleQueueService.NonExistentQueue";
        assert_eq!(class_of(Some(no_queue), Some(400), Subject::Queue), NotFound);
    }

    #[test]
    fn only_a_policy_lacks_a_permission() {
        for code in ["UnauthorizedOperation", "AccessDenied", "AccessDeniedException"] {
            assert!(denies_a_permission(code), "{code}");
        }
        for code in ["AuthFailure", "OptInRequired", "ExpiredToken", "Throttling"] {
            assert!(!denies_a_permission(code), "{code}");
        }
    }
}
