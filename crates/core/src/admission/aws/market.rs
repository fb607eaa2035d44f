//! What is wrong with how an instance is to be paid for: on demand, spot, or from a reservation.

use serde_json::{Map, Value};

use super::{is_id, object};
use crate::{
    admission::{
        fault::{forbidden, invalid, quoted, unsupported},
        object::text,
    },
    decision::FieldError,
};

const RESERVATION: &str = "providerSpec.capacityReservationId";
const MARKET: &str = "providerSpec.marketType";

pub fn faults(spec: &Map<String, Value>) -> Vec<FieldError> {
    let reservation = text(spec, "capacityReservationId");
    let has_spot_options = object(spec, "spotMarketOptions").is_some();
    let mut faults = Vec::new();
    if let Some(id) = reservation.filter(|id| !is_id(id, "cr-", &[17])) {
        let id = Value::from(id);
        faults.push(invalid(
            RESERVATION,
            &id,
            &format!(
                "invalid value for capacityReservationId: {}, it must start with 'cr-' and be \
                 exactly 20 characters long with 17 hexadecimal characters",
                quoted(&id)
            ),
        ));
    }
    let market = text(spec, "marketType");
    let wrong_market = |market: &str, detail: &str| invalid(MARKET, &Value::from(market), detail);
    match (market, has_spot_options, reservation) {
        (None, true, Some(_)) => faults.push(forbidden(
            RESERVATION,
            "may not be set together with providerSpec.spotMarketOptions",
        )),
        (Some(market @ ("OnDemand" | "CapacityBlock")), true, _) => faults.push(wrong_market(
            market,
            "must be Spot or empty when providerSpec.spotMarketOptions is set",
        )),
        (Some(market @ "CapacityBlock"), false, None) => faults.push(wrong_market(
            market,
            "providerSpec.capacityReservationId must be set for a capacity block",
        )),
        (Some(market @ "Spot"), _, Some(_)) => faults.push(wrong_market(
            market,
            "may not be Spot when providerSpec.capacityReservationId is set",
        )),
        (None | Some("OnDemand" | "CapacityBlock" | "Spot"), _, _) => {}
        (Some(other), _, _) => {
            faults.push(unsupported(MARKET, other, &["OnDemand", "Spot", "CapacityBlock"]));
        }
    }
    faults
}
