//! `chancery login`, `token` and `logout`, against a server.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use chancery_testkit::{Client, Database, Engine, Process};
use serde_json::{Value, json};

use super::{BASE, PASSWORD, SignInApp, browser::Browser, device::submit};
use crate::id;

/// A configuration folder of its own for a person.
struct ConfigFolder(PathBuf);

impl ConfigFolder {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Process::command(words);
        command.env("XDG_CONFIG_HOME", &self.0);
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn file(&self) -> PathBuf {
        self.0.join("chancery/login.json")
    }

    fn token(&self) -> String {
        let output = self.run(&["token"]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Makes the access token expire.
    fn expire_token(&self) {
        let mut stored: Value = serde_json::from_slice(&fs::read(self.file()).unwrap()).unwrap();
        stored["expires_on"] = json!(1);
        fs::write(self.file(), stored.to_string()).unwrap();
    }

    /// Logs in, while the person decides in a browser; returns the output of the command and whether it succeeded.
    async fn log_in(&self, server: &Process, words: &[&str], decision: &str) -> (String, bool) {
        let words = [&["login", server.base.as_str()], words].concat();
        let mut running = self.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
        let mut said = |name: &str| {
            let line = lines.next().unwrap().unwrap();
            line.strip_prefix(name).unwrap_or_else(|| panic!("{line}")).trim().to_owned()
        };
        let (address, code) = (said("Open"), said("Code"));
        let mut browser = Browser::of(&Client::anonymous(&server.base), &server.base);
        let page = browser.open(address.strip_prefix(&server.base).unwrap()).await;
        let page = submit(&mut browser, &page, &[("user_code", &code)]).await;
        let mut page = browser.type_password(&page, "ann", PASSWORD).await;
        if page.asks_for_consent() {
            page = browser.submit(&page, &[("decision", "allow"), ("scope", "offline_access")]).await;
        }
        submit(&mut browser, &page, &[("decision", decision)]).await;
        let output = running.wait_with_output().unwrap();
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        let message = String::from_utf8(output.stderr).unwrap();
        (format!("{}\n{message}", rest.join("\n")), output.status.success())
    }
}

fn is_private(path: &Path, mode: u32) -> bool {
    fs::metadata(path).unwrap().permissions().mode() & 0o777 == mode
}

/// A server with an app that may use the device flow, with the platform's resource.
async fn server() -> (Database, Process, SignInApp, ConfigFolder) {
    let database = Database::create(Engine::Sqlite);
    let server = Process::start(&database, &[]).await;
    let members = json!({ "allowDeviceAuthorizationGrant": true, "isPublic": true });
    let home = SignInApp::created_by(&server.admin, members).await;
    let resource = json!({ "clientAppId": home.app["id"], "key": "PlatformManagementService" });
    server.admin.post(&format!("{BASE}/ClientAppResource"), resource).await.expect(201);
    let own = ConfigFolder(database.folder().join("own"));
    (database, server, home, own)
}

/// From login to logout: the token is accepted by the services, is refreshed, and ends.
#[tokio::test]
async fn a_person_logs_in_at_a_terminal() {
    let (_database, server, home, own) = server().await;
    let logged_out = own.run(&["token"]);
    assert!(!logged_out.status.success() && logged_out.stdout.is_empty(), "{logged_out:?}");
    assert!(String::from_utf8_lossy(&logged_out.stderr).contains("nobody is logged in"), "{logged_out:?}");
    let (said, is_in) = own.log_in(&server, &["--client", id(&home.app)], "allow").await;
    assert!(is_in && said.contains("Logged in"), "{said}");
    assert!(is_private(&own.file(), 0o600) && is_private(&own.0.join("chancery"), 0o700));
    let status_of = async |token: &str| {
        let anonymous = Client::anonymous(&server.base);
        anonymous.with_token(token).get(&format!("{BASE}/Tenant")).await.status
    };
    let first = own.token();
    assert_eq!(status_of(&first).await, 403, "known here, with no role yet");
    assert_eq!(own.token(), first, "while it is good it stays");
    // commands for configuration files send the token only to the server of the login
    let folder = own.0.join("files");
    for (base, why) in
        [(server.base.as_str(), "you may read nothing"), ("https://192.0.2.1", "at another server")]
    {
        let refused = own.run(&["export", folder.to_str().unwrap(), "--server", base]);
        let message = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && message.contains(why), "{message}");
    }
    // two concurrent commands work: one of them refreshes
    own.expire_token();
    let both = ["token"; 2].map(|word| own.command(&[word]).stdout(Stdio::piped()).spawn().unwrap());
    let both = both.map(|running| running.wait_with_output().unwrap().stdout);
    assert_eq!(both[0], both[1]);
    let second = own.token();
    assert_ne!(second, first);
    assert_eq!(status_of(&second).await, 403);
    assert!(is_private(&own.file(), 0o600));
    let out = own.run(&["logout"]);
    assert!(out.status.success() && !own.file().exists(), "{out:?}");
    assert_eq!(
        (status_of(&first).await, status_of(&second).await),
        (http::StatusCode::UNAUTHORIZED, http::StatusCode::UNAUTHORIZED)
    );
    assert!(own.run(&["logout"]).status.success() && !own.run(&["token"]).status.success());
}

/// Whoever can change the file could redirect its tokens.
#[test]
fn a_file_that_others_may_read_or_change_is_not_used() {
    let database = Database::create(Engine::Sqlite);
    let own = ConfigFolder(database.folder().join("own"));
    fs::create_dir_all(own.0.join("chancery")).unwrap();
    let stored = json!({
        "client_id": "a", "token_endpoint": "https://id.example/t", "revocation_endpoint": "https://id.example/r",
        "access_token": "t0ken", "expires_on": 9_999_999_999_999_u64, "refresh_token": null,
    });
    fs::write(own.file(), stored.to_string()).unwrap();
    for (mode, is_used) in [(0o600, true), (0o666, false), (0o640, false), (0o602, false), (0o400, true)] {
        fs::set_permissions(own.file(), fs::Permissions::from_mode(mode)).unwrap();
        let output = own.run(&["token"]);
        assert_eq!(output.status.success(), is_used, "{mode:o}: {output:?}");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(is_used || message.contains("login.json") && message.contains("chmod 600"), "{message}");
    }
}

/// A login that replaces another ends it; one that was denied, or requests too much, leaves the previous one.
#[tokio::test]
async fn a_new_login_replaces_the_previous_one() {
    let (_database, mut server, home, own) = server().await;
    let client = id(&home.app);
    assert!(own.log_in(&server, &["--client", client], "allow").await.1);
    let first = own.token();
    let (said, is_in) = own.log_in(&server, &["--client", client], "deny").await;
    assert!(!is_in && said.contains("turned away"), "{said}");
    assert_eq!(own.token(), first);
    for (words, why) in [
        (["login", server.base.as_str(), "--client", "nobody"], "the server refused"),
        (["login", "http://192.0.2.1", "--client", client], "https://"),
    ] {
        let refused = own.run(&words);
        let message = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && message.contains(why), "{message}");
    }
    let other = ["login", server.base.as_str(), "--client", client, "--resource", "nothing"];
    assert!(String::from_utf8_lossy(&own.run(&other).stderr).contains("invalid_target"));
    let (said, is_in) = own.log_in(&server, &["--client", client], "allow").await;
    assert!(is_in, "{said}");
    let bearer = Client::anonymous(&server.base).with_token(&first);
    bearer.get(&format!("{BASE}/Tenant")).await.expect(401);
    // a login that an administrator ended is over
    for grant in server.admin.get(&format!("{BASE}/SignInGrant")).await.is(200).json().as_array().unwrap() {
        server.admin.delete(&format!("{BASE}/SignInGrant/{}", id(grant))).await;
    }
    own.expire_token();
    let over = own.run(&["token"]);
    assert!(String::from_utf8_lossy(&over.stderr).contains("the login is over"), "{over:?}");
    // if the server is gone the tokens remain in the file
    server.kill();
    let logout = own.run(&["logout"]);
    let message = String::from_utf8_lossy(&logout.stderr);
    assert!(!logout.status.success() && message.contains("login.json") && own.file().exists(), "{message}");
}
