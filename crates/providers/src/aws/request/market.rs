//! How is the instance paid for: on demand, spot, or from a reservation?

use aws_sdk_ec2::types::{
    CapacityReservationSpecification, CapacityReservationTarget, InstanceInterruptionBehavior,
    InstanceMarketOptionsRequest, MarketType as Ec2MarketType, SpotInstanceType,
    SpotMarketOptions as Ec2SpotMarketOptions,
};

use super::super::{
    config::{AwsMachineProviderConfig, MarketType},
    errors::invalid,
};
use crate::ProviderError;

pub(super) fn market_options(
    config: &AwsMachineProviderConfig,
) -> Result<Option<InstanceMarketOptionsRequest>, ProviderError> {
    const FIELD: &str = "providerSpec.marketType";
    check_capacity_reservation_id(config)?;
    let spot = config.spot_market_options.as_ref();
    let reservation = config.capacity_reservation_id.as_deref();
    let market = match (config.market_type, spot) {
        (Some(MarketType::OnDemand | MarketType::CapacityBlock), Some(_)) => {
            return Err(invalid(FIELD, "only Spot goes with providerSpec.spotMarketOptions"));
        }
        (Some(market), _) => market,
        (None, Some(_)) => MarketType::Spot,
        (None, None) => MarketType::OnDemand,
    };
    match (market, reservation) {
        (MarketType::OnDemand, _) => Ok(None),
        (MarketType::Spot, Some(_)) => {
            Err(invalid(FIELD, "Spot does not go with providerSpec.capacityReservationId"))
        }
        (MarketType::Spot, None) => {
            Ok(Some(spot_market(spot.and_then(|spot| spot.max_price.clone()))))
        }
        (MarketType::CapacityBlock, Some(_)) => Ok(Some(
            InstanceMarketOptionsRequest::builder()
                .market_type(Ec2MarketType::CapacityBlock)
                .build(),
        )),
        (MarketType::CapacityBlock, None) => {
            Err(invalid(FIELD, "CapacityBlock needs providerSpec.capacityReservationId"))
        }
    }
}

fn spot_market(max_price: Option<String>) -> InstanceMarketOptionsRequest {
    let options = Ec2SpotMarketOptions::builder()
        .spot_instance_type(SpotInstanceType::OneTime)
        .instance_interruption_behavior(InstanceInterruptionBehavior::Terminate)
        .set_max_price(max_price)
        .build();
    InstanceMarketOptionsRequest::builder()
        .market_type(Ec2MarketType::Spot)
        .spot_options(options)
        .build()
}

fn check_capacity_reservation_id(config: &AwsMachineProviderConfig) -> Result<(), ProviderError> {
    let Some(id) = config.capacity_reservation_id.as_deref() else { return Ok(()) };
    let is_lower_hexadecimal = |character: char| matches!(character, '0'..='9' | 'a'..='f');
    let is_well_formed = id
        .strip_prefix("cr-")
        .is_some_and(|rest| rest.len() == 17 && rest.chars().all(is_lower_hexadecimal));
    if is_well_formed {
        return Ok(());
    }
    Err(invalid(
        "providerSpec.capacityReservationId",
        format_args!(
            "invalid value for capacityReservationId: {id:?}, it must start with 'cr-' and be \
             exactly 20 characters long with 17 hexadecimal characters"
        ),
    ))
}

pub(super) fn capacity_reservation(
    config: &AwsMachineProviderConfig,
) -> Option<CapacityReservationSpecification> {
    let id = config.capacity_reservation_id.as_deref()?;
    let target = CapacityReservationTarget::builder().capacity_reservation_id(id).build();
    Some(CapacityReservationSpecification::builder().capacity_reservation_target(target).build())
}
