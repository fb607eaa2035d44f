//! Are placement, market and other options of a launch sound?

use super::check_word;
use crate::cloud::model::{
    catalog::InstanceType,
    error::Ec2Error,
    random::is_resource_id,
    request::RunInstances,
    world::{Subnet, World},
};

pub(super) fn check_placement(
    world: &World,
    request: &RunInstances,
    subnet: &Subnet,
) -> Result<(), Ec2Error> {
    let Some(placement) = &request.placement else {
        return Ok(());
    };
    let named = placement.availability_zone.as_deref();
    if let Some(name) = named
        && world.zone(name).is_none()
    {
        return Err(Ec2Error::invalid_value(format!("Invalid availability zone: [{name}]")));
    }
    let identified = placement.availability_zone_id.as_deref();
    let is_elsewhere = named.is_some_and(|name| name != subnet.zone)
        || identified.is_some_and(|id| id != subnet.zone_id);
    if is_elsewhere {
        return Err(Ec2Error::invalid_value(format!(
            "Value ({}) for parameter availabilityZone is invalid. Subnet '{}' is in the \
             availability zone {}",
            named.or(identified).unwrap_or_default(),
            subnet.id,
            subnet.zone
        )));
    }
    check_word("tenancy", placement.tenancy.as_deref(), &["default", "dedicated", "host"])?;
    check_word("affinity", placement.affinity.as_deref(), &["default", "host"])?;
    if placement.host_id.is_some() && placement.tenancy.as_deref() != Some("host") {
        return Err(Ec2Error::invalid_combination(
            "The parameter hostId requires the tenancy 'host'",
        ));
    }
    if placement.affinity.is_some() && placement.tenancy.as_deref() != Some("host") {
        return Err(Ec2Error::invalid_combination(
            "The parameter affinity requires the tenancy 'host'",
        ));
    }
    if let Some(number) = placement.partition_number
        && !(1..=7).contains(&number)
    {
        return Err(Ec2Error::invalid_value(format!(
            "Value ({number}) for parameter partitionNumber is invalid. Expecting a value between \
             1 and 7."
        )));
    }
    if placement.partition_number.is_some()
        && placement.group_name.is_none()
        && placement.group_id.is_none()
    {
        return Err(Ec2Error::invalid_combination(
            "The parameter partitionNumber requires a placement group",
        ));
    }
    Ok(())
}

pub(super) fn check_options(request: &RunInstances, kind: &InstanceType) -> Result<(), Ec2Error> {
    if let Some(options) = &request.metadata_options {
        check_word("httpTokens", options.http_tokens.as_deref(), &["optional", "required"])?;
        check_word("httpEndpoint", options.http_endpoint.as_deref(), &["enabled", "disabled"])?;
        check_word(
            "httpProtocolIpv6",
            options.http_protocol_ipv6.as_deref(),
            &["enabled", "disabled"],
        )?;
        check_word(
            "instanceMetadataTags",
            options.instance_metadata_tags.as_deref(),
            &["enabled", "disabled"],
        )?;
        if let Some(limit) = options.http_put_response_hop_limit
            && !(1..=64).contains(&limit)
        {
            return Err(Ec2Error::invalid_value(format!(
                "Value ({limit}) for parameter httpPutResponseHopLimit is invalid. Expecting a \
                     value between 1 and 64."
            )));
        }
    }
    if let Some(options) = &request.cpu_options {
        check_word("amdSevSnp", options.amd_sev_snp.as_deref(), &["enabled", "disabled"])?;
        if options.amd_sev_snp.as_deref() == Some("enabled") && kind.manufacturer != "AMD" {
            return Err(Ec2Error::invalid_combination(format!(
                "AMD SEV-SNP is not supported on {}",
                kind.name
            )));
        }
    }
    if let Some(options) = &request.private_dns_name_options {
        check_word(
            "hostnameType",
            options.hostname_type.as_deref(),
            &["ip-name", "resource-name"],
        )?;
    }
    Ok(())
}

pub(super) fn check_maintenance(request: &RunInstances) -> Result<(), Ec2Error> {
    let recovery =
        request.maintenance_options.as_ref().and_then(|options| options.auto_recovery.as_deref());
    check_word("autoRecovery", recovery, &["disabled", "default"])
}

pub(super) fn check_market(request: &RunInstances) -> Result<(), Ec2Error> {
    let reservation = request
        .capacity_reservation_specification
        .as_ref()
        .and_then(|specification| specification.capacity_reservation_id.as_deref());
    if let Some(id) = reservation.filter(|id| !is_resource_id(id, "cr")) {
        return Err(Ec2Error::new(
            "InvalidCapacityReservationId.Malformed",
            format!("Invalid id: \"{id}\" (expecting \"cr-...\")"),
        ));
    }
    let Some(market) = &request.instance_market_options else {
        return Ok(());
    };
    check_word("marketType", market.market_type.as_deref(), &["spot", "capacity-block"])?;
    if market.market_type.as_deref() == Some("capacity-block") && reservation.is_none() {
        return Err(Ec2Error::missing_parameter(
            "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId",
        ));
    }
    if market.market_type.as_deref() == Some("spot") && reservation.is_some() {
        return Err(Ec2Error::invalid_combination(
            "Spot Instances cannot be launched into a Capacity Reservation",
        ));
    }
    let Some(spot) = &market.spot_options else {
        return Ok(());
    };
    check_word(
        "spotInstanceType",
        spot.spot_instance_type.as_deref(),
        &["one-time", "persistent"],
    )?;
    check_word(
        "instanceInterruptionBehavior",
        spot.instance_interruption_behavior.as_deref(),
        &["hibernate", "stop", "terminate"],
    )?;
    if let Some(price) = &spot.max_price {
        let is_price = price.parse::<f64>().is_ok_and(|price| price.is_finite() && price > 0.0);
        if !is_price {
            return Err(Ec2Error::invalid_value(format!(
                "Value ({price}) for parameter maxPrice is invalid. \"{price}\" is an invalid spot \
                 instance price"
            )));
        }
    }
    let stays = !matches!(spot.instance_interruption_behavior.as_deref(), None | Some("terminate"));
    if stays && spot.spot_instance_type.as_deref() != Some("persistent") {
        return Err(Ec2Error::invalid_combination(
            "The interruption behaviors 'stop' and 'hibernate' require a persistent Spot request",
        ));
    }
    Ok(())
}
