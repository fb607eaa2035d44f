//! Would krew take the plugin? What its own checks ask of a manifest, asked of ours.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

const PLATFORMS: [(&str, &str); 4] =
    [("linux", "amd64"), ("linux", "arm64"), ("darwin", "amd64"), ("darwin", "arm64")];

/// The manifest of a release whose archives hold nothing but their name.
fn manifest(version: &str, platforms: &[(&str, &str)]) -> Result<Value, String> {
    let folder = std::env::temp_dir().join(format!(
        "machinist-krew-{}-{}",
        std::process::id(),
        platforms.len()
    ));
    fs::create_dir_all(&folder).unwrap();
    for (os, arch) in platforms {
        let name = format!("machinist-{version}-{os}-{arch}.tar.gz");
        fs::write(folder.join(&name), &name).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/krew/manifest.sh");
    let output = Command::new(script)
        .args([&format!("v{version}"), &folder.display().to_string()])
        .args(["https://example.com/releases/", "https://example.com/machinist"])
        .output()
        .unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(said);
    }
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains('@'), "{text}");
    Ok(serde_saphyr::from_str(&text).unwrap())
}

#[test]
fn the_manifest_has_what_krew_demands() {
    let version = env!("CARGO_PKG_VERSION");
    let plugin = manifest(version, &PLATFORMS).unwrap();
    assert_eq!(plugin["apiVersion"], "krew.googlecontainertools.github.com/v1alpha2");
    assert_eq!(plugin["kind"], "Plugin");
    assert_eq!(plugin["metadata"]["name"], "machinist");
    let spec = &plugin["spec"];
    assert_eq!(spec["version"], format!("v{version}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let short = text(&spec["shortDescription"]);
    assert!(!short.is_empty() && !short.contains(['\r', '\n']) && short.len() <= 50, "{short}");
    for field in ["homepage", "description"] {
        assert!(!text(&spec[field]).is_empty(), "{field}");
    }
    let platforms = spec["platforms"].as_array().unwrap();
    assert_eq!(platforms.len(), PLATFORMS.len());
    let mut sums = Vec::new();
    for (platform, (os, arch)) in platforms.iter().zip(PLATFORMS) {
        let labels = platform["selector"]["matchLabels"].as_object().unwrap();
        assert_eq!((labels.len(), &labels["os"], &labels["arch"]), (2, &os.into(), &arch.into()));
        let uri = text(&platform["uri"]);
        let expected =
            format!("https://example.com/releases/machinist-{version}-{os}-{arch}.tar.gz");
        assert_eq!(uri, expected);
        let sum = text(&platform["sha256"]);
        let is_hex = |letter: char| matches!(letter, '0'..='9' | 'a'..='f');
        assert!(sum.len() == 64 && sum.chars().all(is_hex), "{sum}");
        sums.push(sum);
        let bin = text(&platform["bin"]);
        assert_eq!(bin, "kubectl-machinist");
        let files = platform["files"].as_array().unwrap();
        assert!(files.iter().all(|one| !text(&one["from"]).is_empty() && one["to"] == "."));
        assert!(files.iter().any(|one| text(&one["from"]) == bin), "the program is not among them");
    }
    sums.sort();
    sums.dedup();
    assert_eq!(sums.len(), PLATFORMS.len(), "each archive has its own sum");
}

#[test]
fn an_archive_that_is_missing_is_named() {
    let problem = manifest("1.2.3", &PLATFORMS[..3]).unwrap_err();
    assert!(problem.contains("machinist-1.2.3-darwin-arm64.tar.gz"), "{problem}");
}
