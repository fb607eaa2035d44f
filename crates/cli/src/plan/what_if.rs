//! What if the provider announced something that it has not? A supposed event for one machine.

use jiff::Timestamp;
use machinist_core::{
    machine::observed::Identity,
    maintenance::event::{Code, Sighting},
};

use crate::{failure::Hinted, fleet, snapshot::Snapshot, zone::Zone};

const FORM: &str = "the form is machine=NAME,code=instance-retirement,not-before=TIME, and \
                    deadline=TIME for up to when the provider would let it be moved";

/// An event that a person supposes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WhatIf {
    machine: String,
    code: String,
    not_before: Timestamp,
    movable_until: Option<Timestamp>,
}

pub(super) fn read(texts: &[String], zone: &Zone) -> anyhow::Result<Vec<WhatIf>> {
    texts.iter().map(|text| read_one(text, zone)).collect()
}

fn read_one(text: &str, zone: &Zone) -> anyhow::Result<WhatIf> {
    let refused = |problem: String| {
        anyhow::Error::from(Hinted::new(format!("--what-if {text:?}: {problem}"), FORM))
    };
    let (mut machine, mut code, mut not_before, mut movable_until) = (None, None, None, None);
    for part in text.split(',').filter(|part| !part.trim().is_empty()) {
        let Some((key, value)) = part.split_once('=') else {
            return Err(refused(format!("{part:?} is no key=value")));
        };
        let value = value.trim();
        let time = |key: &str| zone.read(&format!("--what-if {key}"), value);
        match key.trim() {
            "machine" => machine = Some(value.strip_prefix("machine/").unwrap_or(value).to_owned()),
            "code" => code = Some(value.to_owned()),
            "not-before" => not_before = Some(time("not-before")?),
            "deadline" => movable_until = Some(time("deadline")?),
            other => return Err(refused(format!("{other}: unknown key"))),
        }
    }
    let missing = |key: &str| refused(format!("{key}: Required value"));
    let code = code.ok_or_else(|| missing("code"))?;
    if Code::of(&code).is_none() {
        let codes: Vec<&str> = Code::ALL.into_iter().map(Code::as_str).collect();
        return Err(refused(format!(
            "code: Unsupported value: {code:?}: supported values: {}",
            codes.join(", ")
        )));
    }
    Ok(WhatIf {
        machine: machine.ok_or_else(|| missing("machine"))?,
        code,
        not_before: not_before.ok_or_else(|| missing("not-before"))?,
        movable_until,
    })
}

/// The events as the provider would show them for the machines' instances.
pub(super) fn sightings(wishes: &[WhatIf], snapshot: &Snapshot) -> anyhow::Result<Vec<Sighting>> {
    let mut sightings = Vec::new();
    for (index, wish) in wishes.iter().enumerate() {
        let found = snapshot.machines.iter().find(|one| fleet::name_of(one) == wish.machine);
        let Some(machine) = found else {
            let what = format!(
                "--what-if: there is no machine {} in namespace {}",
                wish.machine, snapshot.namespace
            );
            return Err(Hinted::new(what, "`machinist status` lists the machines").into());
        };
        let Some(instance) = Identity::of(machine).instance_id else {
            let what = format!("--what-if: machine {} has no instance yet", wish.machine);
            return Err(Hinted::new(what, "suppose an event for one that runs").into());
        };
        let id = format!("what-if-{}", index + 1);
        let mut sighting = fleet::supposed(id, instance, &wish.code, wish.not_before);
        sighting.not_before_deadline = wish.movable_until;
        sightings.push(sighting);
    }
    Ok(sightings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_in_the_persons_zone() {
        let zone = Zone::named("Europe/Berlin").unwrap();
        let text = "machine=machine/a-0, code=instance-stop,not-before=2026-11-07 22:00,\
                    deadline=2026-11-09T00:00:00Z";
        assert_eq!(
            read_one(text, &zone).unwrap(),
            WhatIf {
                machine: "a-0".to_owned(),
                code: "instance-stop".to_owned(),
                not_before: "2026-11-07T21:00:00Z".parse().unwrap(),
                movable_until: Some("2026-11-09T00:00:00Z".parse().unwrap()),
            }
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let zone = Zone::named("UTC").unwrap();
        for (text, problem) in [
            ("", "code: Required value"),
            ("machine", "\"machine\" is no key=value"),
            ("machine=a,code=instance-stop", "not-before: Required value"),
            ("code=instance-stop,not-before=2026-11-07", "machine: Required value"),
            ("when=2026-11-07", "when: unknown key"),
            ("code=explosion", "code: Unsupported value: \"explosion\""),
            ("not-before=soon", "--what-if not-before: Invalid value: \"soon\""),
        ] {
            let error = read_one(text, &zone).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
