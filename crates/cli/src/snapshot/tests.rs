//! Are objects read from files as kubectl writes them, and is what cannot be used told by name?

use std::{fs, path::PathBuf};

use crate::testing::{fleet, from_files, testdata};

/// A folder of its own for one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("machinist-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

#[tokio::test]
async fn a_dump_holds_every_kind() {
    let snapshot = fleet().await;
    assert_eq!(snapshot.machines.len(), 9);
    assert_eq!(snapshot.sets.len(), 2);
    assert_eq!(snapshot.nodes.len(), 9);
    assert_eq!(snapshot.pods.len(), 4);
    assert_eq!(snapshot.budgets.len(), 1);
    assert_eq!(snapshot.maintenances.len(), 6);
    assert_eq!(snapshot.policies.len(), 1);
    assert_eq!(snapshot.health_checks.len(), 1);
    assert!(snapshot.home.is_some());
    assert_eq!(snapshot.objects().pause(), None);
    assert!(snapshot.notes.is_empty(), "{:?}", snapshot.notes);
}

#[tokio::test]
async fn lists_folders_and_json_are_read_and_other_kinds_are_not() {
    let folder = Folder::new("lists");
    folder.write(
        "a/list.yaml",
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: n-2}}\n\
         - {apiVersion: v1, kind: Secret, metadata: {name: s}}\n",
    );
    folder.write(
        "b.json",
        r#"{"apiVersion":"v1","kind":"NodeList","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"n-1"}}]}"#,
    );
    folder.write("notes.txt", "no YAML: at all: [");
    let snapshot = from_files(std::slice::from_ref(&folder.0)).await.unwrap();
    let names: Vec<&str> =
        snapshot.nodes.iter().filter_map(|node| node.metadata.name.as_deref()).collect();
    assert_eq!(names, ["n-1", "n-2"]);
}

#[tokio::test]
async fn an_object_that_is_not_what_its_kind_says_hides_no_other() {
    let folder = Folder::new("broken");
    let machine = "apiVersion: machine.openshift.io/v1beta1\nkind: Machine\n";
    folder.write(
        "machines.yaml",
        &format!(
            "{machine}metadata: {{name: good}}\nspec: {{}}\n---\n{machine}metadata: {{name: bad}}\n\
             spec: {{taints: 7}}\n---\n{machine}metadata: {{name: far, namespace: other}}\n"
        ),
    );
    let snapshot = from_files(std::slice::from_ref(&folder.0)).await.unwrap();
    assert_eq!(snapshot.machines.len(), 1);
    assert_eq!(snapshot.notes.len(), 1);
    let message = &snapshot.notes[0].message;
    assert!(message.starts_with("machine/bad cannot be read and is left out: "), "{message}");
}

#[tokio::test]
async fn where_the_machines_are_instead_is_said() {
    let folder = Folder::new("elsewhere");
    let path = folder.write(
        "machine.yaml",
        "{apiVersion: machine.openshift.io/v1beta1, kind: Machine, metadata: {name: far, namespace: \
         other}, spec: {}}",
    );
    let snapshot = from_files(&[path]).await.unwrap();
    let error = snapshot.require_machines().unwrap_err();
    assert_eq!(error.to_string(), "there is no Machine in namespace openshift-machine-api");
    assert!(snapshot.other_namespaces.contains("other"));
}

#[tokio::test]
async fn a_file_that_is_none_is_named() {
    let folder = Folder::new("no-yaml");
    let path = folder.write("broken.yaml", "a: [1\n");
    let error = format!("{:#}", from_files(&[path]).await.unwrap_err());
    assert!(error.contains("broken.yaml is no YAML"), "{error}");
    let error = from_files(&[folder.0.join("absent.yaml")]).await.unwrap_err();
    assert!(error.to_string().contains("absent.yaml"), "{error}");
}

#[tokio::test]
async fn a_policy_of_a_file_takes_the_place_of_its_namesake() {
    let mut snapshot = fleet().await;
    assert_eq!(snapshot.try_policies(&[testdata("nights.yaml")]).unwrap(), ["nights"]);
    assert_eq!(snapshot.policies.len(), 1);
    assert_eq!(snapshot.policies[0].spec.windows[0].name, "every-night");
}

#[tokio::test]
async fn what_is_wrong_with_a_policy_is_told_by_field() {
    let folder = Folder::new("policies");
    let policy = "apiVersion: machinist.dev/v1alpha1\nkind: MaintenancePolicy\n";
    for (spec, expected) in [
        (
            "{windows: [{name: w, cron: '0 2 * * *', duration: 1h, timeZone: Mars/Olympus}]}",
            "maintenancepolicy/p: spec.windows[0].timeZone: Invalid value: ",
        ),
        ("{windwos: []}", ""),
        ("{windwos: [{name: w}]}", "maintenancepolicy/p: spec.windwos: unknown field"),
        (
            "{windows: [{name: w, crn: x, cron: '0 2 * * *', duration: 1h}]}",
            "maintenancepolicy/p: spec.windows[0].crn: unknown field",
        ),
        ("{paused: 7}", "maintenancepolicy/p: spec.paused: Invalid value: "),
        ("{margin: soon}", "maintenancepolicy/p: spec.margin: Invalid value: "),
    ] {
        let text = format!("{policy}metadata: {{name: p}}\nspec: {spec}\n");
        let path = folder.write("policy.yaml", &text);
        let read = fleet().await.try_policies(&[path]);
        if expected.is_empty() {
            assert_eq!(read.unwrap(), ["p"], "{spec}");
        } else {
            let error = read.unwrap_err().to_string();
            assert!(error.contains(expected), "{spec}: {error}");
            assert!(error.contains("policy.yaml"), "{error}");
        }
    }
    for (text, expected) in [
        (format!("{policy}metadata: {{}}\nspec: {{}}\n"), "metadata.name: Required value"),
        ("kind: Pod\n".to_owned(), "kind: Unsupported value: Pod"),
        ("---\n".to_owned(), "holds no object"),
    ] {
        let path = folder.write("policy.yaml", &text);
        let error = fleet().await.try_policies(&[path]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn all_faults_of_all_files_are_told_at_once() {
    let folder = Folder::new("many");
    let of = |name: &str| {
        format!(
            "apiVersion: machinist.dev/v1alpha1\nkind: MaintenancePolicy\nmetadata: {{name: \
             {name}}}\nspec: {{margin: soon, retention: late}}\n"
        )
    };
    let first = folder.write("first.yaml", &format!("{}---\n{}", of("a"), of("b")));
    let second = folder.write("second.yaml", &of("c"));
    let error = fleet().await.try_policies(&[first, second]).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1 + 6, "{error}");
}
