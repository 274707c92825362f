//! Configuration as code: the program against a server, by its public interface alone.

mod settles;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use chancery_configuration::kinds;
use chancery_management::SERVICE;
use chancery_testkit::{Client, Database, Engine, PATIENCE, Process, World, on_both_engines};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    process::Command,
};

use crate::{
    fixtures::create_fixtures,
    id,
    pattern::{key_of, rows},
    until,
};

/// A folder of documents, and the server that they are for.
struct Set {
    folder: PathBuf,
    server: String,
    token: String,
}

impl Set {
    fn new(world: &World, name: &str) -> Self {
        let folder = world.database.folder().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self { folder, server: world.base.clone(), token: world.admin.token().to_owned() }
    }

    fn by(self, client: &Client) -> Self {
        Self { token: client.token().to_owned(), ..self }
    }

    fn command(&self, words: &[&str]) -> Command {
        let (word, more) = words.split_first().unwrap();
        let mut command = Command::from(Process::command(&[word]));
        command.arg(&self.folder).args(["--server", &self.server]).args(more);
        command.env("CHANCERY_TOKEN", &self.token).env_remove("CREDENTIALS_DIRECTORY");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    async fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().await.unwrap()
    }

    /// Runs a command that ends with this status, and returns its output.
    async fn shown(&self, words: &[&str], status: i32) -> String {
        let output = self.run(words).await;
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).join("\n");
        assert_eq!(output.status.code(), Some(status), "{words:?}: {text}");
        text
    }

    fn write(&self, documents: &[(&str, Value)]) {
        let documents = documents.iter().map(|(kind, members)| json!({ "kind": kind, "members": members }));
        fs::write(self.folder.join("set.json"), documents.collect::<Value>().to_string()).unwrap();
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The row of this name.
async fn named(world: &World, kind: &str, name: &str) -> Value {
    let all = world.all(kind).await;
    all.as_array().unwrap().iter().find(|row| row["name"] == name).cloned().unwrap_or_default()
}

/// An address before the server that forwards everything but answers to batches that are no trials.
async fn silent_after_batches(world: &World) -> String {
    let (listener, server) =
        (TcpListener::bind("127.0.0.1:0").await.unwrap(), world.base.replace("http://", ""));
    let address = listener.local_addr().unwrap();
    chancery_testkit::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&server).await.unwrap();
            chancery_testkit::spawn(pass_on(client, server));
        }
    });
    format!("http://{address}")
}

async fn pass_on(client: TcpStream, server: TcpStream) {
    const BATCH: &[u8] = b"/batch HTTP/1.1";
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let is_silent = AtomicBool::new(false);
    let requests = async {
        let mut bytes = vec![0; 65_536];
        while let Ok(count @ 1..) = from_client.read(&mut bytes).await {
            is_silent.fetch_or(
                bytes[..count].windows(BATCH.len()).any(|window| window == BATCH),
                Ordering::Relaxed,
            );
            to_server.write_all(&bytes[..count]).await.unwrap();
        }
    };
    let answering = async {
        let mut bytes = vec![0; 65_536];
        while let Ok(count @ 1..) = from_server.read(&mut bytes).await {
            if !is_silent.load(Ordering::Relaxed) && to_client.write_all(&bytes[..count]).await.is_err() {
                break;
            }
        }
    };
    tokio::join!(requests, answering);
}

on_both_engines! {
    /// An export has no differences; a change in it is shown, applied, and then there are none again.
    async fn an_export_can_be_changed_and_applied(world: World) {
        let app = world.make("ClientApp", json!({ "name": "Web" })).await;
        let tenant = world.all("Tenant").await[0].clone();
        world.admin.post(&format!("/api/management/v2/Tenant/{}/clientapps", id(&tenant)), json!({ "relatedIds": [app["id"]] })).await.expect(202);
        world.make("ClientAppRedirectUri", json!({ "clientAppId": app["id"], "uri": "https://web.example.com/back" })).await;
        world.make("CustomView", json!({ "location": format!("/views/tenant/{}/SignIn", id(&tenant)), "content": "<p>{{ title }}</p>" })).await;
        let set = Set::new(&world, "exported");
        set.shown(&["export"], 0).await;
        let views = fs::read_to_string(set.folder.join("CustomView.json")).unwrap();
        assert!(views.contains("/views/tenant/{Default/Default/") && !views.contains(id(&tenant)), "{views}");
        assert!(!set.folder.join("ClientAppSecret.json").exists());
        assert!(set.shown(&["plan"], 0).await.contains("Nothing to do."));
        let file = set.folder.join("ClientApp.json");
        let mut apps = read(&file);
        for app in apps.as_array_mut().unwrap().iter_mut().filter(|app| app["members"]["name"] == "Web") {
            app["members"]["clientUri"] = json!("https://web.example.com");
        }
        fs::write(&file, apps.to_string()).unwrap();
        let shown = set.shown(&["plan"], 2).await;
        assert!(shown.contains("~ change ClientApp Default/Default/Web") && shown.contains("clientUri: null -> \"https://web.example.com\""), "{shown}");
        assert_eq!(named(&world, "ClientApp", "Web").await["clientUri"], json!(null));
        set.shown(&["apply", "--yes"], 0).await;
        assert_eq!(named(&world, "ClientApp", "Web").await["clientUri"], "https://web.example.com");
        assert!(set.shown(&["plan"], 0).await.contains("Nothing to do."));
    }

    /// One of each kind, as the management interface has them: an export of them has no differences; changes by
    /// hand are found, and reset to the export.
    async fn one_of_each_kind_is_exported_and_set_back(world: World) {
        let fixtures = create_fixtures(&world.admin).await;
        let kinds = kinds(&SERVICE.all().collect::<Vec<_>>());
        for row in rows().iter().filter(|row| kinds.iter().any(|kind| kind.name == row.resource)) {
            world.make(row.resource, fixtures.fill(&row.create, 1)).await;
        }
        let set = Set::new(&world, "each");
        set.shown(&["export"], 0).await;
        let exported = |kind: &str| set.folder.join(format!("{kind}.json"));
        let without: Vec<&str> = kinds.iter().map(|kind| kind.name).filter(|kind| !exported(kind).exists()).collect();
        assert_eq!(without, ["ClientAppSecret"]);
        assert!(set.shown(&["plan"], 0).await.contains("Nothing to do."));
        let texts: Vec<String> = kinds.iter().filter_map(|kind| fs::read_to_string(exported(kind.name)).ok()).collect();
        assert!(!texts.concat().contains("PRIVATE KEY"));
        for (kind, member, value) in [("ClientAppKeySet", "use", "Encryption"), ("CustomAsset", "data", "bmV3"), ("CustomView", "content", "<p>new</p>")] {
            let row = world.all(kind).await.as_array().unwrap().last().unwrap().clone();
            let path = format!("/api/management/v2/{kind}/{}", key_of(kind, &row).trim_start_matches('/'));
            world.admin.patch(&path, json!({ member: value, "concurrencyToken": row["concurrencyToken"] })).await.expect(202);
        }
        let shown = set.shown(&["plan"], 2).await;
        for kind in ["ClientAppKeySet", "CustomAsset", "CustomView"] {
            assert_eq!(shown.matches(&format!("~ change {kind} ")).count(), 1, "{kind}: {shown}");
        }
        set.shown(&["apply", "--yes"], 0).await;
        assert!(set.shown(&["plan"], 0).await.contains("Nothing to do."));
    }

    /// A value that the server normalizes has no difference once it is applied; a byte order mark of an editor is skipped, and
    /// a repeated member is reported.
    async fn an_applied_set_has_no_differences(world: World) {
        let set = Set::new(&world, "settled");
        let keys: Value = serde_json::from_str(r#"{"keys":[{"kty":"EC","crv":"P-256","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"}]}"#).unwrap();
        let documents = json!([
            { "kind": "Tenant", "members": { "name": " East\n", "subscriptionId": " Default ", "description": "  the people of the east\n" } },
            { "kind": "Tenant", "members": { "name": "West", "subscriptionId": "Default", "description": "", "isActive": null } },
            { "kind": "ClientApp", "members": { "name": "Web", "accessGrantConsent": "explicit" } },
        ]);
        let mut documents = documents;
        documents.as_array_mut().unwrap().push(json!({ "kind": "ClientAppKeySet", "members": { "clientAppId": "Web", "name": "ks", "use": "signing", "jwks": keys } }));
        let text = format!("\u{feff}{documents}");
        fs::write(set.folder.join("set.json"), &text).unwrap();
        set.shown(&["apply", "--yes"], 0).await;
        assert!(set.shown(&["plan"], 0).await.contains("Nothing to do."));
        fs::write(set.folder.join("set.json"), text.replacen("\"name\"", "\"name\":\"North\",\"name\"", 1)).unwrap();
        let shown = set.shown(&["plan"], 1).await;
        assert!(shown.contains("twice") && shown.contains("set.json"), "{shown}");
    }

    /// A tenant, its options, an app, its secret and a rule name each other, and are created in one run; then pruned.
    async fn new_rows_are_created_by_their_names(world: World) {
        let set = Set::new(&world, "new");
        let documents = [
            ("ClaimRule", json!({ "name": "roles", "ruleType": "Filter", "ruleLevel": "ClientApp", "typeEvaluationRule": "^role$", "clientApps": ["Shop"] })),
            ("ClientAppSecret", json!({ "name": "first", "clientAppId": "Shop", "secret": { "secret": "SHOP_SECRET" } })),
            ("ClientApp", json!({ "name": "Shop", "allowClientCredentialLogin": true, "tenants": ["East"] })),
            ("Option", json!({ "name": "AccessTokenLifetime", "applyToTenantId": "East", "value": "00:10:00" })),
            ("Tenant", json!({ "name": "East", "subscriptionId": "Default" })),
        ];
        set.write(&documents);
        let shown = set.shown(&["plan"], 1).await;
        assert!(shown.contains("set.json#/1/members/secret: the secret SHOP_SECRET is not given"), "{shown}");
        let secret = "a secret that is long enough, and nobody's";
        // a trailing line end, as in a file, is trimmed
        let given = format!("{secret}\n");
        let run = async |words: &[&str]| set.command(words).env("SHOP_SECRET", &given).output().await.unwrap();
        let planned = run(&["plan"]).await;
        assert_eq!(planned.status.code(), Some(2), "{planned:?}");
        let applied = run(&["apply", "--yes"]).await;
        assert_eq!(applied.status.code(), Some(0), "{applied:?}");
        for output in [&planned, &applied] {
            let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(!text.contains(secret), "{text}");
        }
        let remembered = fs::read_to_string(set.folder.join(".applied.json")).unwrap();
        assert!(!remembered.contains(secret) && remembered.contains("SHOP_SECRET"), "{remembered}");
        let (app, tenant) = (named(&world, "ClientApp", "Shop").await, named(&world, "Tenant", "East").await);
        assert_eq!(tenant["clientApps"][0]["name"], "Shop");
        assert_eq!(named(&world, "ClaimRule", "roles").await["clientApps"][0]["id"], app["id"]);
        let options = world.all("Option").await;
        let mut options = options.as_array().unwrap().iter().filter(|row| row["applyToTenantId"] == tenant["id"] && row["name"] == "AccessTokenLifetime");
        assert_eq!(options.next().unwrap()["value"], "00:10:00");
        assert!(options.next().is_none());
        let form = format!("grant_type=client_credentials&client_id={}&client_secret={}", id(&app), secret.replace(' ', "+"));
        world.anonymous.ask_for_token(&form).await.expect(200);
        assert_eq!(run(&["plan"]).await.status.code(), Some(0));
        // only rows that the set created are pruned, and only on request
        let mut app_alone = documents[2].1.clone();
        app_alone["tenants"] = json!([]);
        set.write(&[("ClientApp", app_alone)]);
        let shown = set.shown(&["plan", "--prune"], 2).await;
        assert!(shown.contains("- delete Tenant Default/Default/East") && shown.contains("0 to create, 1 to change"), "{shown}");
        let before = world.all("Tenant").await.as_array().unwrap().len();
        set.shown(&["apply", "--prune", "--yes"], 0).await;
        assert_eq!(world.all("Tenant").await.as_array().unwrap().len(), before - 1);
        assert_eq!(named(&world, "ClaimRule", "roles").await, Value::Null);
        assert_eq!(id(&named(&world, "ClientApp", "Shop").await), id(&app));
        set.shown(&["plan", "--prune"], 0).await;
    }

    /// The rows of a batch are remembered before it is sent: an apply that is killed before the answer forgets nothing.
    async fn an_apply_that_is_killed_forgets_nothing(world: World) {
        let set = Set { server: silent_after_batches(&world).await, ..Set::new(&world, "killed") };
        set.write(&[("ClientApp", json!({ "name": "Half" })), ("ClientApp", json!({ "name": "Other" }))]);
        let mut child = set.command(&["apply", "--yes"]).spawn().unwrap();
        until("it is made", || async { named(&world, "ClientApp", "Half").await != Value::Null }).await;
        child.kill().await.unwrap();
        set.write(&[]);
        let shown = set.shown(&["plan", "--prune"], 2).await;
        assert!(shown.contains("2 to delete"), "{shown}");
    }

    /// A concurrent change while the plan was read is refused.
    async fn a_concurrent_change_is_refused(world: World) {
        let app = world.make("ClientApp", json!({ "name": "Web" })).await;
        let set = Set::new(&world, "concurrent");
        set.write(&[("ClientApp", json!({ "name": "Web", "clientUri": "https://ours.example.com" }))]);
        let mut child = set.command(&["apply"]).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while !lines.next_line().await.unwrap().unwrap().contains("1 to change") {}
        let path = format!("/api/management/v2/ClientApp/{}", id(&app));
        let theirs = json!({ "clientUri": "https://theirs.example.com", "concurrencyToken": app["concurrencyToken"] });
        // the question comes after the dry run, which must have seen the plan's token
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut question = Vec::new();
        stderr.read_until(b':', &mut question).await.unwrap();
        world.admin.patch(&path, theirs).await.expect(202);
        child.stdin.take().unwrap().write_all(b"yes\n").await.unwrap();
        let output = child.wait_with_output().await.unwrap();
        let mut rest = String::new();
        stderr.read_to_string(&mut rest).await.unwrap();
        assert_eq!((output.status.code(), rest.contains("plan again")), (Some(1), true), "{rest}");
        assert_eq!(named(&world, "ClientApp", "Web").await["clientUri"], "https://theirs.example.com");
        // any other answer than yes changes nothing
        let mut child = set.command(&["apply"]).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"no\n").await.unwrap();
        assert_eq!(child.wait_with_output().await.unwrap().status.code(), Some(2));
        assert_eq!(named(&world, "ClientApp", "Web").await["clientUri"], "https://theirs.example.com");
    }

    /// Refusals of the server are reported before any change, by file and pointer; a caller without rights gets nothing.
    async fn refusals_are_reported_before_any_change(world: World) {
        let set = Set::new(&world, "refused");
        set.write(&[("ClientApp", json!({ "name": "First" })), ("ClientApp", json!({ "name": "Second", "clientUri": "nonsense" }))]);
        let shown = set.shown(&["apply", "--yes"], 1).await;
        assert!(shown.contains("set.json#/1/members/clientUri"), "{shown}");
        assert_eq!(named(&world, "ClientApp", "First").await, Value::Null);
        assert!(!set.folder.join(".applied.json").exists());
        let unprivileged = world.client("nobody", &[]).await;
        let shown = Set::new(&world, "refused").by(&unprivileged).shown(&["export"], 1).await;
        assert!(shown.contains("you may read nothing"), "{shown}");
        let shown = Set { token: "nonsense".into(), ..Set::new(&world, "refused") }.shown(&["plan"], 1).await;
        assert!(shown.contains("token"), "{shown}");
    }
}

/// A pipe among the documents is refused without waiting for it; characters that would turn a terminal's line are escaped.
#[tokio::test]
async fn files_that_are_no_documents_are_reported() {
    let database = Database::create(Engine::Sqlite);
    let folder = database.folder().join("pipes");
    fs::create_dir_all(&folder).unwrap();
    let pipe = folder.join("a\u{202e}b.json");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let server = Process::start(&database, &[]).await;
    let mut command = Command::from(Process::command(&["plan"]));
    command.arg(&folder).args(["--server", &server.base]).env("CHANCERY_TOKEN", server.admin.token());
    let output = tokio::time::timeout(PATIENCE, command.kill_on_drop(true).output()).await.unwrap().unwrap();
    let shown = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("a\\u{202e}b.json: is no regular file"), "{shown}");
}

#[tokio::test]
async fn the_command_line_explains_configuration_as_code() {
    for (word, expected) in [("export", "Example:"), ("plan", "Exit status"), ("apply", "--prune")] {
        let output = Process::command(&[word, "--help"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains(expected) && text.contains("--server"), "{text}");
    }
}
