//! Do the commands of the guide work? Each block of docs/guide is run, page after page, on a cluster of
//! its own: a real control plane and a simulated cloud, in which the operator runs as a process with the
//! flags and the rights of the Deployment that the commands made. The last page is run in [`cluster_api`].

mod cluster_api;
mod pages;
mod reader;

use std::{collections::BTreeSet, fs};

use self::{
    pages::{ORDER, commands, fences, folder},
    reader::Reader,
};
use crate::arena::run;

/// What is neither run nor output would be a command that nobody tries.
#[test]
fn every_block_of_the_guide_is_commands_or_their_output() {
    let entries = fs::read_dir(folder()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<String> = names.filter(|name| name != "README.md").collect();
    assert_eq!(
        names,
        BTreeSet::from(ORDER.map(str::to_owned)),
        "a page of the guide that is not run"
    );
    for page in ORDER {
        let text = fs::read_to_string(folder().join(page)).unwrap();
        for fence in fences(&text) {
            assert!(matches!(fence.language, "bash" | "text"), "{page}: {}", fence.language);
        }
    }
    let overview = fs::read_to_string(folder().join("README.md")).unwrap();
    let listed: Vec<&str> =
        overview.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
    assert_eq!(listed, ORDER, "the overview has another order");
}

#[test]
fn the_commands_of_the_guide_work_from_the_first_to_the_last() {
    run(async {
        let reader = Reader::start("machine-api").await;
        let reading = async {
            for page in &ORDER[..4] {
                reader.read(page).await;
            }
            // From here on nothing may be launched or lost.
            let machines = reader.settled(2).await;
            reader.read("uninstall.md").await;
            assert_eq!(reader.instances(), machines, "uninstalling lost a machine");
            reader.become_openshift().await;
            reader.read("migrate-machine-api.md").await;
            assert_eq!(reader.instances(), machines, "the migration changed the fleet");
        };
        tokio::select! {
            () = reader.play_the_pods() => {}
            () = reading => {}
        }
        reader.finish().await;
    });
}

#[test]
fn blocks_are_found_with_their_language() {
    let text =
        "a\n```bash\none \\\n  two\n```\n- b:\n  ```text\n  out\n  ```\n```bash\nthree\n```\n";
    let languages: Vec<&str> = fences(text).iter().map(|fence| fence.language).collect();
    assert_eq!(languages, ["bash", "text", "bash"]);
    assert_eq!(commands(text), "one \\\n  two\nthree\n");
}
