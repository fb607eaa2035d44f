//! Are tricks refused, and is a browser told what it may do with every answer?

use super::*;

#[tokio::test(start_paused = true)]
async fn paths_that_have_to_be_decoded_or_lead_elsewhere_are_nobodys() {
    let site = Site::new(true);
    for path in [
        "/api",
        "/api/",
        "/api/v1",
        "/api/v1/",
        "/api/v2/fleet",
        "/api/v1/fleet/",
        "/api/v1//fleet",
        "/api/v1/./fleet",
        "/api/v1/../v1/fleet",
        "/api/v1/%66leet",
        "/api/v1/machines/%2e%2e",
        "/api/v1/machines/a%2Fapprove",
        "/api/v1/machines/a/secrets",
        "/api/v1/secrets",
        "//api/v1/fleet",
        "/assets/../index.html",
        "/assets/..%2f..%2fetc/passwd",
        "/etc/passwd.txt",
        "/.env",
    ] {
        let (status, _, text) = site.get(path, "writer").await;
        assert_eq!(status, 404, "{path}: {text}");
    }
    let long = format!("/api/v1/machines/{}", "a".repeat(600));
    assert_eq!(site.get(&long, "writer").await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn every_answer_says_what_a_browser_may_do_with_it() {
    let site = Site::new(true);
    for (path, token) in [
        ("/api/v1/fleet", "reader"),
        ("/api/v1/fleet", ""),
        ("/api/v1/fleet", "nobody"),
        ("/api/v1/nothing", "reader"),
        ("/", ""),
        ("/machines/a", ""),
        ("/nothing.js", ""),
    ] {
        let (_, headers, _) = site.get(path, token).await;
        let of = |name: &str| headers.get(name).map_or("", |value| value.to_str().unwrap());
        assert!(of("content-security-policy").starts_with("default-src 'none';"), "{path}");
        assert!(!of("content-security-policy").contains("unsafe"), "{path}");
        assert_eq!(of("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(of("x-frame-options"), "DENY", "{path}");
        assert_eq!(of("referrer-policy"), "no-referrer", "{path}");
        assert_eq!(of("set-cookie"), "", "{path}");
        assert_eq!(of("access-control-allow-origin"), "", "{path}");
        if path.starts_with("/api/v1/fleet") {
            assert_eq!(of("cache-control"), "no-store", "{path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn changes_come_from_the_page_itself_as_json_and_in_small() {
    let site = Site::new(true);
    let path = "/api/v1/machines/b/approve";
    let json = ("content-type", "application/json");
    let large = format!("{{\"x\":\"{}\"}}", "x".repeat(300 * 1024));
    type Headers<'a> = &'a [(&'a str, &'a str)];
    let table: [(Headers<'_>, &str, u16, &str); 11] = [
        (&[], "{}", 415, "WrongContentType"),
        (&[("content-type", "text/plain")], "{}", 415, "WrongContentType"),
        (&[("content-type", "application/x-www-form-urlencoded")], "a=b", 415, "WrongContentType"),
        (&[json, ("origin", "https://evil.example")], "{}", 403, "WrongOrigin"),
        (&[json, ("origin", "null")], "{}", 403, "WrongOrigin"),
        (&[json, ("sec-fetch-site", "cross-site")], "{}", 403, "WrongOrigin"),
        (&[json, ("sec-fetch-site", "same-site")], "{}", 403, "WrongOrigin"),
        (&[json], "no json", 400, "Invalid"),
        (&[json], r#"{"anyReason":true,"x":1}"#, 400, "Invalid"),
        (&[json], &large, 413, "TooLarge"),
        (&[json, ("origin", "https://page.example.evil")], "{}", 403, "WrongOrigin"),
    ];
    for (headers, content, status, code) in table {
        let answer = site.ask(request(Method::POST, path, "writer", content, headers)).await;
        let (got, _, text) = told(answer).await;
        assert_eq!(got, status, "{headers:?}: {text}");
        assert!(text.contains(code), "{headers:?}: {text}");
    }
    assert!(site.log.lock().unwrap().is_empty(), "nothing was sent on");
    for headers in [
        &[json, ("origin", "https://page.example"), ("sec-fetch-site", "same-origin")][..],
        &[json, ("origin", "https://proxy.example"), ("sec-fetch-site", "cross-site")],
    ] {
        let answer = site.ask(request(Method::POST, path, "writer", "{}", headers)).await;
        assert_eq!(told(answer).await.0, 200, "{headers:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_path_has_one_method() {
    let site = Site::new(true);
    for method in [Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS, Method::HEAD] {
        for path in ["/api/v1/fleet", "/api/v1/pause"] {
            let answer = site.ask(request(method.clone(), path, "writer", "", &[])).await;
            assert_eq!(told(answer).await.0, 405, "{method} {path}");
        }
    }
    assert_eq!(site.get("/api/v1/pause", "writer").await.0, 405);
    assert_eq!(site.post("/api/v1/fleet", "writer", "{}").await.0, 405);
    let answer = site.ask(request(Method::POST, "/", "", "", &[])).await;
    assert_eq!(told(answer).await.0, 405);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_answered_before_the_cluster_was_read() {
    let World { context, supervisor, .. } = World::new();
    let site = Site::new(false);
    let context = Arc::new(context);
    let board = Boards::new(&context, "ns").of(&Audience::default());
    assert!(board.current().await.is_err());
    fill(&context);
    board.current().await.unwrap();
    drop((site, supervisor));
}

/// Who somebody is says their token alone, in one place.
#[tokio::test(start_paused = true)]
async fn nobody_becomes_somebody_by_other_headers_cookies_or_addresses() {
    let site = Site::new(true);
    type Headers<'a> = &'a [(&'a str, &'a str)];
    let strangers: [Headers<'_>; 12] = [
        &[("authorization", "Basic d3JpdGVyOndyaXRlcg==")],
        &[("authorization", "Bearer")],
        &[("authorization", "Bearer ")],
        &[("authorization", "writer")],
        &[("authorization", "Token writer")],
        &[("x-authorization", "Bearer writer")],
        &[("proxy-authorization", "Bearer writer")],
        &[("cookie", "token=writer; machinist-token=writer")],
        &[("x-remote-user", "writer"), ("x-remote-group", "system:masters")],
        &[("x-forwarded-user", "writer"), ("x-forwarded-access-token", "writer")],
        &[("impersonate-user", "writer")],
        &[("sec-websocket-protocol", "base64url.bearer.authorization.k8s.io.d3JpdGVy")],
    ];
    for headers in strangers {
        let asked = site.ask(request(Method::GET, "/api/v1/fleet", "", "", headers)).await;
        assert_eq!(told(asked).await.0, 401, "{headers:?}");
    }
    for path in ["/api/v1/fleet?token=writer", "/api/v1/fleet?access_token=writer"] {
        assert_eq!(site.get(path, "").await.0, 401, "{path}");
    }
    // Somebody without rights gains none by claiming to be another.
    let json = ("content-type", "application/json");
    for claim in [
        ("impersonate-user", "writer"),
        ("impersonate-group", "system:masters"),
        ("x-remote-user", "writer"),
        ("authorization", "Bearer writer"),
    ] {
        let asked = site.ask(request(Method::GET, "/api/v1/fleet", "nobody", "", &[claim])).await;
        assert_ne!(told(asked).await.0, 200, "{claim:?}");
        let path = "/api/v1/machines/b/approve";
        let asked = site.ask(request(Method::POST, path, "nobody", "{}", &[json, claim])).await;
        assert_ne!(told(asked).await.0, 200, "{claim:?}");
    }
    assert!(site.log.lock().unwrap().is_empty(), "nothing was sent on");
}

#[tokio::test(start_paused = true)]
async fn a_method_is_the_one_of_the_request_line() {
    let site = Site::new(true);
    for header in ["x-http-method-override", "x-http-method", "x-method-override"] {
        let path = "/api/v1/machines/b/approve";
        let asked = site.ask(request(Method::GET, path, "writer", "", &[(header, "POST")])).await;
        assert_eq!(told(asked).await.0, 405, "{header}");
    }
    let asked =
        site.ask(request(Method::GET, "/api/v1/pause?_method=POST", "writer", "", &[])).await;
    assert_eq!(told(asked).await.0, 405);
    assert!(site.log.lock().unwrap().is_empty());
}

/// A path that these tests do not know would be one that nobody tries without a token.
#[test]
fn every_path_of_the_document_is_tried() {
    let document = super::super::document::document();
    let shape = |path: &str| {
        let path = path.strip_prefix("/api/v1").unwrap_or(path);
        let parts: Vec<&str> = path.split('/').collect();
        match parts.as_slice() {
            ["", "machines", _] => "/machines/{name}".to_owned(),
            ["", "machines", _, rest] => format!("/machines/{{name}}/{rest}"),
            _ => path.to_owned(),
        }
    };
    let tried = READS.into_iter().chain(WRITES.map(|(path, _)| path)).chain([TRIAL, STREAM]);
    let tried: std::collections::BTreeSet<String> = tried.map(shape).collect();
    let described: std::collections::BTreeSet<String> =
        document["paths"].as_object().unwrap().keys().map(|path| shape(path)).collect();
    assert_eq!(tried, described);
}
