//! Can the API server ask about our objects? Somebody must be where a webhook points, and its certificate
//! must still be good.

use jiff::{SignedDuration, Timestamp};

use super::{
    leases::whole_seconds,
    observed::{Observed, Reach, WebhookState},
    report::{Check, Code, Finding, Level},
};
use crate::serving_certificate::{self, Validity};

pub(super) const NAME: &str = "webhooks";

/// Whoever renews certificates has done it by then.
const SOON: SignedDuration = SignedDuration::from_hours(7 * 24);

const HOW_TO_RENEW: &str = "see who writes it: cert-manager and service-ca say why they do not in their \
                            logs; one of the operator's own is renewed when its Secret \
                            machine-api-operator-webhook-cert is deleted";

pub(super) fn check(observed: &Observed) -> Check {
    let webhooks = match &observed.webhooks {
        Ok(webhooks) => webhooks,
        Err(why) => return Check::not_made(NAME, why),
    };
    if webhooks.is_empty() {
        let well = "there are none: nobody checks Machines as they are written";
        return Check::of(NAME, well.to_owned(), Vec::new());
    }
    let mut findings = Vec::new();
    for webhook in webhooks {
        findings.extend(reach(webhook));
        findings.extend(trust(webhook, observed.now));
    }
    findings.extend(served(observed));
    // Several webhooks lead to the same place, and have the same bundle.
    let mut told: Vec<Finding> = Vec::new();
    for finding in findings {
        let is_told = told.iter().any(|one| (&one.what, one.code) == (&finding.what, finding.code));
        if !is_told {
            told.push(finding);
        }
    }
    let count = webhooks.len();
    let well = format!("{count} can be asked");
    Check::of(NAME, well, told)
}

fn reach(webhook: &WebhookState) -> Option<Finding> {
    let WebhookState { configuration, name, target, .. } = webhook;
    let consequence = if webhook.fails_closed {
        "objects are refused meanwhile"
    } else {
        "objects are admitted unchecked meanwhile"
    };
    let finding = |level: Level, seen: &str, fix: &str| {
        Some(Finding {
            code: Code::WebhookPointingNowhere,
            level,
            what: format!("{configuration} points to {target}, where nobody answers"),
            seen: format!("{seen}; it is asked for {name}, and {consequence}"),
            fix: fix.to_owned(),
        })
    };
    let leftover = "apply deploy/kustomize/base/services.yaml, or delete the configuration if it is a \
                    leftover of another installation";
    match &webhook.reach {
        Ok(Reach::Answers) => None,
        Ok(Reach::NoSuchService) => finding(Level::Failed, "the Service does not exist", leftover),
        Ok(Reach::NoSuchPort) => finding(Level::Failed, "the Service has no such port", leftover),
        Ok(Reach::NoEndpoint) => finding(
            Level::Failed,
            "no Pod of the Service is ready",
            "see why the operator's Pods are not ready: kubectl get pods -A -l \
             app.kubernetes.io/name=machinist",
        ),
        Ok(Reach::NobodyListens) => finding(
            Level::Warning,
            "a connection from here was refused, which the API server may see otherwise",
            "start the operator with --keep-webhooks=url:… as it was, or delete the configuration",
        ),
        Err(why) => Some(Finding::warning(
            Code::NotChecked,
            format!("whether somebody answers at {target} could not be looked at"),
            why.clone(),
            "get the right to read services and endpointslices there".to_owned(),
        )),
    }
}

fn trust(webhook: &WebhookState, now: Timestamp) -> Option<Finding> {
    let WebhookState { configuration, ca_bundle, .. } = webhook;
    if ca_bundle.is_empty() {
        return Some(Finding::warning(
            Code::WebhookWithoutAuthority,
            format!("{configuration} names no authority for its webhooks"),
            "caBundle is empty: the API server trusts only public authorities there".to_owned(),
            "see that cert-manager's cainjector or OpenShift's service-ca runs, which write it"
                .to_owned(),
        ));
    }
    let whose = format!("the authority in {configuration}");
    match serving_certificate::read_all(ca_bundle) {
        // Any one that is good will do: during a change there are two.
        Ok(all) => {
            let best = all.iter().map(|one| one.validity).max_by_key(|one| one.not_after)?;
            validity(&whose, best, now)
        }
        Err(error) => Some(unreadable(&whose, &error)),
    }
}

fn served(observed: &Observed) -> Option<Finding> {
    let whose = "the certificate in Secret machine-api-operator-webhook-cert".to_owned();
    match &observed.serving_certificate {
        Ok(None) => None,
        Ok(Some(pem)) => match serving_certificate::read(pem) {
            Ok(certificate) => validity(&whose, certificate.validity, observed.now),
            Err(error) => Some(unreadable(&whose, &error)),
        },
        Err(why) => Some(Finding::warning(
            Code::NotChecked,
            format!("{whose} could not be looked at"),
            why.clone(),
            "ask somebody who may read it; the metric machinist_certificate_expiry_timestamp_seconds says the \
             same"
                .to_owned(),
        )),
    }
}

fn validity(whose: &str, validity: Validity, now: Timestamp) -> Option<Finding> {
    let Validity { not_before, not_after } = validity;
    let (level, what, seen) = if now >= not_after {
        let seen = format!("it was good until {}", whole_seconds(not_after));
        (Level::Failed, format!("{whose} has expired"), seen)
    } else if now < not_before {
        let seen = format!("it is good from {}", whole_seconds(not_before));
        (Level::Failed, format!("{whose} is not good yet"), seen)
    } else if not_after.duration_since(now) < SOON {
        let seen = format!("it is good until {}", whole_seconds(not_after));
        (Level::Warning, format!("{whose} expires soon"), seen)
    } else {
        return None;
    };
    Some(Finding {
        code: Code::ExpiredWebhookCertificate,
        level,
        what,
        seen,
        fix: HOW_TO_RENEW.to_owned(),
    })
}

fn unreadable(whose: &str, error: &serving_certificate::CertificateError) -> Finding {
    Finding::failed(
        Code::WebhookWithoutAuthority,
        format!("{whose} cannot be read"),
        error.to_string(),
        HOW_TO_RENEW.to_owned(),
    )
}
