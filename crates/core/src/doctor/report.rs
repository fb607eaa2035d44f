//! What does the examination answer?

use serde::Serialize;

/// All checks, and how bad the worst of it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub level: Level,
    pub checks: Vec<Check>,
}

/// One part of the examination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    pub name: &'static str,
    pub level: Level,
    /// What was looked at, in one short sentence.
    pub says: String,
    pub findings: Vec<Finding>,
}

/// One thing that is wrong, or could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub code: Code,
    pub level: Level,
    pub what: String,
    /// How it was seen.
    pub seen: String,
    /// What to do about it.
    pub fix: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    Ok,
    /// Something does not work as well as it could, or could not be looked at.
    Warning,
    /// Something does not work.
    Failed,
}

impl Level {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// What kind of thing is wrong. Scripts and the documentation know them by these names: they are never
/// changed, only added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    MissingCrd,
    OldCrdVersion,
    MissingRbacVerb,
    OwnRightMissing,
    OperatorNotRunning,
    OperatorSaysNothing,
    OperatorNeedsAttention,
    SecondController,
    ClockSkew,
    WrongCredentials,
    MissingIamAction,
    UnreachableEndpoint,
    CloudRefuses,
    QuotaUsedUp,
    ExpiredWebhookCertificate,
    WebhookPointingNowhere,
    WebhookWithoutAuthority,
    NotChecked,
}

impl Code {
    pub const ALL: [Self; 18] = [
        Self::MissingCrd,
        Self::OldCrdVersion,
        Self::MissingRbacVerb,
        Self::OwnRightMissing,
        Self::OperatorNotRunning,
        Self::OperatorSaysNothing,
        Self::OperatorNeedsAttention,
        Self::SecondController,
        Self::ClockSkew,
        Self::WrongCredentials,
        Self::MissingIamAction,
        Self::UnreachableEndpoint,
        Self::CloudRefuses,
        Self::QuotaUsedUp,
        Self::ExpiredWebhookCertificate,
        Self::WebhookPointingNowhere,
        Self::WebhookWithoutAuthority,
        Self::NotChecked,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::MissingCrd => "missing-crd",
            Self::OldCrdVersion => "old-crd-version",
            Self::MissingRbacVerb => "missing-rbac-verb",
            Self::OwnRightMissing => "own-right-missing",
            Self::OperatorNotRunning => "operator-not-running",
            Self::OperatorSaysNothing => "operator-says-nothing",
            Self::OperatorNeedsAttention => "operator-needs-attention",
            Self::SecondController => "second-controller",
            Self::ClockSkew => "clock-skew",
            Self::WrongCredentials => "wrong-credentials",
            Self::MissingIamAction => "missing-iam-action",
            Self::UnreachableEndpoint => "unreachable-endpoint",
            Self::CloudRefuses => "cloud-refuses",
            Self::QuotaUsedUp => "quota-used-up",
            Self::ExpiredWebhookCertificate => "expired-webhook-certificate",
            Self::WebhookPointingNowhere => "webhook-pointing-nowhere",
            Self::WebhookWithoutAuthority => "webhook-without-authority",
            Self::NotChecked => "not-checked",
        }
    }
}

impl Report {
    pub(super) fn of(checks: Vec<Check>) -> Self {
        let level = worst(checks.iter().map(|check| check.level));
        Self { level, checks }
    }

    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.checks.iter().flat_map(|check| &check.findings)
    }

    /// How many checks ended so.
    pub fn count(&self, level: Level) -> usize {
        self.checks.iter().filter(|check| check.level == level).count()
    }
}

impl Check {
    /// A check with what it found; `well` is what it says when that is nothing.
    pub(super) fn of(name: &'static str, well: String, findings: Vec<Finding>) -> Self {
        let level = worst(findings.iter().map(|finding| finding.level));
        let says = match findings.as_slice() {
            [] => well,
            [one] => one.what.clone(),
            [first, rest @ ..] => format!("{}, and {} more", first.what, rest.len()),
        };
        Self { name, level, says, findings }
    }

    /// A check that could not be made, because the person may not read what it needs.
    pub(super) fn not_made(name: &'static str, why: &str) -> Self {
        Self::not_made_yet(name, why, "ask somebody who may, or get the right to read it")
    }

    /// A check that could not be made, with what would let it.
    pub(super) fn not_made_yet(name: &'static str, why: &str, fix: &str) -> Self {
        let finding = Finding::warning(
            Code::NotChecked,
            "this could not be looked at".to_owned(),
            why.to_owned(),
            fix.to_owned(),
        );
        Self::of(name, String::new(), vec![finding])
    }
}

impl Finding {
    pub(super) fn failed(code: Code, what: String, seen: String, fix: String) -> Self {
        Self { code, level: Level::Failed, what, seen, fix }
    }

    pub(super) fn warning(code: Code, what: String, seen: String, fix: String) -> Self {
        Self { code, level: Level::Warning, what, seen, fix }
    }
}

fn worst(levels: impl Iterator<Item = Level>) -> Level {
    levels.max().unwrap_or(Level::Ok)
}
