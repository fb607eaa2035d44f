//! Does a Cluster API cluster live the same life with Machinist as with Cluster API's own core manager?
//!
//! Both run the same scripts on the same API server, each in a namespace of its own, with Cluster API's
//! definitions and its in-memory provider, unmodified. What comes out is compared field by field.

mod accepted;
mod bad_input;
mod compare;
mod drain;
mod life;
mod stage;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use stage::Stage;

use crate::{
    arena::{cluster, run},
    cluster_api::compare::{Outcome, assert_same},
};

/// Who controls the Machines of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Cluster API's own manager.
    Core,
    Machinist,
}

impl Side {
    const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Machinist => "machinist",
        }
    }
}

/// Ours take the place of Cluster API's where those are not installed. Here those are, so nothing is stored.
#[test]
fn an_api_server_takes_our_definitions() {
    run(async {
        let client = cluster().await.admin().clone();
        let api = Api::<CustomResourceDefinition>::all(client);
        let parameters = PatchParams::apply("e2e").force().dry_run();
        for definition in machinist_api::crd::cluster_api() {
            let name = definition.metadata.name.clone().unwrap();
            let answer = api.patch(&name, &parameters, &Patch::Apply(&definition)).await;
            answer.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    });
}

/// One test for all: they take turns with the provider, and a test that waits for its turn would keep another from running.
#[test]
#[ignore = "needs Cluster API's own programs: `make cluster-api` builds them and runs it"]
fn every_script_comes_out_as_with_the_core_manager() {
    run(async {
        drain::a_node_is_drained_by_rules_and_its_volumes_detach_before_the_machine_goes().await;
        bad_input::bad_input_is_named_on_the_object_and_others_go_on().await;
        life::a_health_check_has_a_sick_machine_replaced().await;
        life::a_new_template_rolls_with_a_surge_of_one().await;
        life::a_deployment_scales_from_0_to_50_and_back().await;
        life::restarts_of_provider_and_controller_lose_and_double_nothing().await;
    });
}

/// Runs a script on one side after the other and compares what comes out. Cluster API's manager keeps to no
/// namespace (see `ClusterApi::start_core`): what the provider writes to objects of another place has it act there too.
async fn on_both_sides(name: &str, script: impl AsyncFn(&mut Stage) -> Outcome) {
    let play = async |side| {
        let mut stage = Stage::new(side, name).await;
        let outcome = script(&mut stage).await;
        stage.check_log().await;
        outcome
    };
    let core = play(Side::Core).await;
    assert_same(name, &core, &play(Side::Machinist).await);
    println!("{name}: the same");
}
