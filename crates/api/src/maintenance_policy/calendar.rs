//! When work may begin, and when it may not: the windows and freezes of a MaintenancePolicy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DURATION;

/// When work may begin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.cron) != has(self.rrule)",
        "message": "give either cron or rrule"
    },
    {
        "rule": "has(self.rrule) || (!has(self.start) && !has(self.except))",
        "message": "start and except belong to rrule"
    }
]))]
pub struct MaintenanceWindow {
    /// Five fields, as in a CronJob: when it opens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub cron: Option<String>,
    /// How long it stays open, such as "2h30m".
    #[schemars(extend("pattern" = DURATION))]
    pub duration: String,
    /// Times or days at which the rrule does not hold, as EXDATE.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500), extend("x-kubernetes-list-type" = "set"))]
    pub except: Vec<String>,
    /// What it is called in plans.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// A recurrence rule of RFC 5545, such as FREQ=MONTHLY;BYDAY=2SA;BYHOUR=22: when it opens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32768))]
    pub rrule: Option<String>,
    /// When the rrule begins, as DTSTART: 2026-01-03T22:00.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// The IANA time zone of the schedule, such as Europe/Berlin; UTC where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

/// When nothing may begin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.from) == has(self.to)",
        "message": "from and to belong together"
    },
    {
        "rule": "has(self.from) != has(self.yearly)",
        "message": "give either from and to, or yearly"
    }
]))]
pub struct MaintenanceFreeze {
    /// When it begins: 2026-12-20, 2026-12-20T18:00 or 2026-12-20T18:00:00Z.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What it is called in plans.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The IANA time zone of dates and times; UTC where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// When it ends; a date means its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Every year.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yearly: Option<YearlyFreeze>,
}

/// A freeze of every year. An end that comes before the beginning lies in the next year.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct YearlyFreeze {
    /// When it begins.
    pub from: YearlyMoment,
    /// When it ends.
    pub to: YearlyMoment,
}

/// A moment of every year.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.dayOfMonth) || (!has(self.weekOfMonth) && !has(self.dayOfWeek))",
        "message": "dayOfMonth excludes weekOfMonth and dayOfWeek"
    },
    {
        "rule": "!has(self.dayOfWeek) || has(self.weekOfMonth)",
        "message": "dayOfWeek needs weekOfMonth beside it"
    }
]))]
pub struct YearlyMoment {
    /// 1 to 31.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 31))]
    pub day_of_month: Option<i32>,
    /// Such as Monday.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day_of_week: Option<String>,
    /// Such as December.
    pub month: String,
    /// HH:MM; without it a freeze begins, or ends, with the day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// 1 to 4, or -1 for the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1, max = 4))]
    pub week_of_month: Option<i32>,
}
