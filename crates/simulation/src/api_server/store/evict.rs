//! May a pod be moved away? Asks the disruption budgets, takes from them, and deletes the pod.
//!
//! Who counts the healthy pods and fills the budgets again is somebody else: the disruption controller.

use serde_json::{Value, json};

use super::{Answer, Store, Turn, delete::DeleteOptions, seconds};
use crate::api_server::value_at;
use crate::api_server::{
    failure::Failure,
    kinds::KindRef,
    object::{Object, ObjectRef, object_at, text_at},
    request::ApiRequest,
    selector::Selector,
};

const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
/// Evictions that the disruption controller has not confirmed; beyond it a budget refuses.
const DISRUPTED_PODS_MAX: usize = 2000;

/// What the budgets say.
enum Verdict {
    Free,
    /// The pod is not healthy and its budget does not need it. It may go as it was seen, and no
    /// otherwise.
    FreeAsSeen {
        budget: String,
    },
}

impl Store {
    pub(super) fn evict(
        &mut self,
        turn: &Turn<'_>,
        request: &ApiRequest,
    ) -> Result<Answer, Failure> {
        if text_at(&request.body, "/metadata/name") != request.name {
            return Err(Failure::bad_request("name in URL does not match name in Eviction object"));
        }
        let options =
            DeleteOptions::read(request.body.get("deleteOptions").unwrap_or(&Value::Null))?;
        let found = self.get(request.kind, &request.namespace, &request.name).cloned();
        let pod = found.ok_or_else(|| Failure::not_found(request.kind.kind, &request.name))?;

        let phase = text_at(pod.value(), "/status/phase");
        let over = matches!(phase, "Succeeded" | "Failed") || pod.is_being_deleted();
        if over || phase == "Pending" {
            self.disrupt(turn, request.kind, &pod, options)?;
            return Ok(evicted());
        }
        match self.ask_budgets(turn, &pod)? {
            Verdict::Free => self.disrupt(turn, request.kind, &pod, options)?,
            Verdict::FreeAsSeen { budget } => {
                let own_version = options.resource_version.is_some();
                self.disrupt(turn, request.kind, &pod, options).map_err(|failure| {
                    if failure.reason == "Conflict" && !own_version {
                        still_processed(&budget)
                    } else {
                        failure
                    }
                })?;
            }
        }
        Ok(evicted())
    }

    fn ask_budgets(&mut self, turn: &Turn<'_>, pod: &Object) -> Result<Verdict, Failure> {
        let Some(kind) = KindRef::find("policy", "poddisruptionbudgets") else {
            return Ok(Verdict::Free);
        };
        let matching: Vec<ObjectRef> = self
            .objects(kind)
            .filter(|budget| {
                let selector = value_at(budget.value(), "/spec/selector");
                budget.namespace() == pod.namespace()
                    && selector
                        .and_then(Selector::of_label_selector)
                        .is_some_and(|selector| selector.matches(pod.value()))
            })
            .cloned()
            .collect();
        match matching.as_slice() {
            [] => Ok(Verdict::Free),
            [budget] => self.ask_budget(turn, kind, budget, pod),
            _ => {
                let message = "This pod has more than one PodDisruptionBudget, which the eviction \
                               subresource does not support.";
                Err(Failure::new(500, "", message))
            }
        }
    }

    fn ask_budget(
        &mut self,
        turn: &Turn<'_>,
        kind: KindRef,
        budget: &ObjectRef,
        pod: &Object,
    ) -> Result<Verdict, Failure> {
        let value = budget.value();
        let name = budget.name();
        let number =
            |pointer: &str| value_at(value, pointer).and_then(Value::as_i64).unwrap_or_default();
        let (healthy, desired) =
            (number("/status/currentHealthy"), number("/status/desiredHealthy"));
        if !is_ready(pod.value()) {
            let always = text_at(value, "/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow";
            if always || (healthy >= desired && desired > 0) {
                return Ok(Verdict::FreeAsSeen { budget: name.to_owned() });
            }
        }
        if number("/status/observedGeneration") < number("/metadata/generation") {
            return Err(still_processed(name));
        }
        let forbidden = |why: &str| Failure::forbidden("policy", "poddisruptionbudget", name, why);
        let allowed = number("/status/disruptionsAllowed");
        if allowed < 0 {
            return Err(forbidden("pdb disruptions allowed is negative"));
        }
        let disrupted = value_at(value, "/status/disruptedPods").and_then(Value::as_object);
        if disrupted.is_some_and(|pods| pods.len() > DISRUPTED_PODS_MAX) {
            let why =
                "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
            return Err(forbidden(why));
        }
        if allowed == 0 {
            let cause = json!({ "reason": "DisruptionBudget", "message": refusal(value, name, healthy, desired) });
            return Err(Failure::too_many_requests(REFUSED, 0, cause));
        }
        let mut value = value.clone();
        let status = object_at(&mut value, "status");
        status.insert("disruptionsAllowed".to_owned(), json!(allowed - 1));
        let disrupted = status.entry("disruptedPods").or_insert_with(|| json!({}));
        if let Some(disrupted) = disrupted.as_object_mut() {
            disrupted.insert(pod.name().to_owned(), seconds(turn.now));
        }
        if allowed == 1 {
            let generation = value_at(&value, "/status/observedGeneration").cloned();
            let condition = json!({
                "type": "DisruptionAllowed",
                "status": "False",
                "observedGeneration": generation,
                "reason": "InsufficientPods",
                "message": "",
                "lastTransitionTime": seconds(turn.now),
            });
            set_condition(&mut value, condition);
        }
        self.put(turn, kind, value);
        Ok(Verdict::Free)
    }

    /// Notes on the pod why it goes, and deletes it.
    fn disrupt(
        &mut self,
        turn: &Turn<'_>,
        kind: KindRef,
        pod: &ObjectRef,
        mut options: DeleteOptions,
    ) -> Result<(), Failure> {
        let refuse = |why: String| Err(Failure::delete_conflict(kind.kind, pod.name(), &why));
        if let Some(uid) = options.uid.as_deref().filter(|uid| !uid.is_empty() && *uid != pod.uid())
        {
            return refuse(format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). The \
                 object might have been deleted and then recreated",
                pod.uid()
            ));
        }
        let stored = pod.revision().to_string();
        let wanted = options.resource_version.as_deref();
        if let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty() && *wanted != stored) {
            return refuse(format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the \
                 ResourceVersion in record ({stored}). The object might have been modified"
            ));
        }
        let mut value = pod.value().clone();
        let condition = json!({
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
            "lastTransitionTime": seconds(turn.now),
        });
        set_condition(&mut value, condition);
        let noted = self.replace(turn, kind, pod, value)?;
        // The note may have been what finished it: a pod that was deleted and had no finalizer left.
        let Some(current) = self.get(kind, noted.namespace(), noted.name()).cloned() else {
            return Err(Failure::not_found(kind.kind, noted.name()));
        };
        if options.resource_version.is_some() {
            options.resource_version = Some(current.revision().to_string());
        }
        self.delete_object(turn, kind, &current, &options)?;
        Ok(())
    }
}

fn evicted() -> Answer {
    let value = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    });
    Answer::Value { code: 201, value }
}

fn still_processed(budget: &str) -> Failure {
    let message = format!("The disruption budget {budget} is still being processed by the server.");
    let cause = json!({ "reason": "DisruptionBudget", "message": message });
    Failure::too_many_requests(REFUSED, 10, cause)
}

fn refusal(value: &Value, name: &str, healthy: i64, desired: i64) -> String {
    let conditions = value_at(value, "/status/conditions").and_then(Value::as_array);
    let condition = conditions.into_iter().flatten().find(|condition| {
        text_at(condition, "/type") == "DisruptionAllowed"
            && text_at(condition, "/status") == "False"
            && !text_at(condition, "/message").is_empty()
    });
    let (reason, message) = condition.map_or(("", ""), |condition| {
        (text_at(condition, "/reason"), text_at(condition, "/message"))
    });
    if condition.is_some() && reason == "SyncFailed" {
        format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed \
             sync: {message}"
        )
    } else if healthy <= desired {
        format!(
            "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        )
    } else if condition.is_some() {
        format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
        )
    } else {
        format!("The disruption budget {name} does not allow evicting pods currently")
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = value_at(pod, "/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        text_at(condition, "/type") == "Ready" && text_at(condition, "/status") == "True"
    })
}

/// Sets a condition of the status. One that already says so keeps the time of its change.
pub(super) fn set_condition(value: &mut Value, mut condition: Value) {
    let conditions = object_at(value, "status").entry("conditions").or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else { return };
    let kind = text_at(&condition, "/type").to_owned();
    let Some(own) = conditions.iter_mut().find(|one| text_at(one, "/type") == kind) else {
        conditions.push(condition);
        return;
    };
    if own.get("status") == condition.get("status")
        && let (Some(time), Some(fields)) =
            (own.get("lastTransitionTime"), condition.as_object_mut())
    {
        fields.insert("lastTransitionTime".to_owned(), time.clone());
    }
    *own = condition;
}
