//! A test's world: a running server with its callers.

use std::{
    net::TcpListener,
    path::Path,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use chancery::Server;
use chancery_federation::ProviderAddresses;
use chancery_store::{Error, Mode, raw};
use chancery_web::App;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    Client, Database, Engine,
    server_config::{ROOT_SECRET, config},
    template,
};

/// A role to assign to a client app: its type, tenant and instance.
pub type RoleRow<'a> = (&'a str, Option<Uuid>, Option<Uuid>);

/// A running server, its administrator and its database.
pub struct World {
    /// The root client.
    pub admin: Client,
    /// A caller without a token.
    pub anonymous: Client,
    /// The engine that the server runs on.
    pub engine: Engine,
    /// The server's database.
    pub database: Arc<Database>,
    /// The server's own state, where there is no interface yet.
    pub app: Arc<App>,
    /// The base URL of the server.
    pub base: String,
    /// The address at which the server expects public identity providers.
    public_providers: Mutex<Option<TcpListener>>,
}

/// No further arguments on the server's command line.
pub fn no_arguments(_: &Path) -> Vec<String> {
    Vec::new()
}

/// A test's body, boxed so that its runner is compiled once and not for each test.
pub type Test = fn(World) -> Pin<Box<dyn Future<Output = ()>>>;

/// Runs a test in a world of its own, whose server is started with further arguments.
///
/// # Panics
/// When the server does not start.
#[expect(clippy::expect_used, reason = "a test cannot go on without its server")]
pub fn run_with(engine: Engine, words: fn(&Path) -> Vec<String>, test: Test) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let database = Arc::new(template::copy(engine).await);
        let mut config = config(&database, words(&database.folder()));
        let public_providers = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = public_providers.local_addr().expect("it is bound");
        config.provider_addresses = one_address(&format!("http://{address}"));
        let server = Server::start(&config).await.expect("the server starts");
        let (base, app) = (server.public_url.clone(), server.app());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(server.run(async {
            let _ = stopped.await;
            std::time::Duration::ZERO
        }));
        let anonymous = Client::anonymous(&base);
        let admin = log_in(&anonymous, "root", ROOT_SECRET).await;
        let (calls, state) = (Arc::clone(&admin.calls), Arc::clone(&app));
        let retained = Arc::clone(&database);
        let public_providers = Mutex::new(Some(public_providers));
        let world = World { admin, anonymous, engine, database, app, base, public_providers };
        test(world).await;
        crate::catalogue::check(&state, &calls).await;
        let _ = stop.send(());
        running.await.expect("the server stops").expect("the server serves its database");
        drop(retained);
    });
}

/// All public identity providers at one address.
pub fn one_address(address: &str) -> ProviderAddresses {
    let at = || address.to_owned();
    ProviderAddresses {
        microsoft: at(),
        google: at(),
        facebook: at(),
        facebook_api: at(),
        twitter: at(),
        twitter_api: at(),
    }
}

async fn log_in(anonymous: &Client, client: &str, secret: &str) -> Client {
    let secret = secret.replace(' ', "+");
    let form = format!("grant_type=client_credentials&client_id={client}&client_secret={secret}");
    let token = anonymous.ask_for_token(&form).await.is(200).json();
    anonymous.with_token(token["access_token"].as_str().unwrap_or_default())
}

impl World {
    /// Takes the address at which the server expects public identity providers.
    ///
    /// # Panics
    /// When it was taken before.
    #[expect(clippy::expect_used, reason = "a test takes it once")]
    pub fn take_public_providers(&self) -> TcpListener {
        let mut listener = self.public_providers.lock().unwrap_or_else(PoisonError::into_inner);
        listener.take().expect("nobody took it before")
    }

    /// The prefix of the default user store's administration.
    pub fn path(&self, rest: &str) -> String {
        format!("/api/userstore/v2/default/administration{rest}")
    }

    /// Creates a user and returns the answer's body.
    pub async fn user(&self, login_name: &str) -> Value {
        let body = serde_json::json!({ "loginName": login_name });
        self.admin.post(&self.path("/User"), body).await.is(201).json()
    }

    /// Creates a group and returns the answer's body.
    pub async fn group(&self, name: &str) -> Value {
        let body = serde_json::json!({ "name": name });
        self.admin.post(&self.path("/Group"), body).await.is(201).json()
    }

    /// Sets an option of the default user store.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn set_option(&self, name: &str, value: &str) {
        let list = "/api/management/v2/Option?filter=name%20eq%20%22";
        let options = self.admin.get(&format!("{list}{name}%22")).await.is(200).json();
        let option = options
            .as_array()
            .and_then(|options| options.iter().find(|option| !option["applyToIdpInstanceId"].is_null()))
            .cloned()
            .unwrap_or_default();
        let body = serde_json::json!({ "value": value, "concurrencyToken": option["concurrencyToken"] });
        let path = format!("/api/management/v2/Option/{}", option["id"].as_str().unwrap_or_default());
        self.admin.patch(&path, body).await.expect(202);
    }

    /// The newest audit entries, the newest first.
    pub async fn audit(&self, count: usize) -> Vec<Value> {
        let path = self.path(&format!("/CustomAuditTrail?sortOrder=descending&count={count}"));
        let entries = self.admin.get(&path).await.is(200).json();
        entries.as_array().cloned().unwrap_or_default()
    }

    /// Runs statements on the database, as an interface of a later release would.
    ///
    /// # Panics
    /// When one fails.
    #[expect(clippy::expect_used, reason = "a test fails by it")]
    pub async fn sql(&self, statements: Vec<(&'static str, Vec<chancery_record::Value>)>) {
        let run = self.app.store.run("Test", Mode::Write, None, move |tx| {
            for (text, parameters) in &statements {
                raw::queue(tx, text, parameters.clone())?;
            }
            tx.advance_epoch()
        });
        run.await.map_err(|error: Error| error.to_string()).expect("the statements run");
        // an earlier result may be obsolete
        self.admin.calls.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
    }

    /// Creates a resource of the management service and returns the answer's body.
    pub async fn make(&self, resource: &str, body: Value) -> Value {
        self.admin.post(&format!("/api/management/v2/{resource}"), body).await.is(201).json()
    }

    /// All rows of a resource of the management service.
    pub async fn all(&self, resource: &str) -> Value {
        self.admin.get(&format!("/api/management/v2/{resource}")).await.is(200).json()
    }

    /// Creates a client app with these roles in the default subscription, and gets it a token.
    pub async fn client(&self, name: &str, roles: &[RoleRow<'_>]) -> Client {
        let subscriptions = self.all("Subscription").await;
        let default =
            subscriptions.as_array().and_then(|all| all.iter().find(|one| one["name"] == "Default"));
        let subscription = default.map_or(Value::Null, |one| one["id"].clone());
        self.client_in(&subscription, name, roles).await
    }

    /// Creates a client app with these roles in a subscription, and gets it a token.
    pub async fn client_in(&self, subscription: &Value, name: &str, roles: &[RoleRow<'_>]) -> Client {
        self.client_by(&self.admin, subscription, name, roles).await
    }

    /// The same, created by another client app.
    pub async fn client_by(
        &self,
        maker: &Client,
        subscription: &Value,
        name: &str,
        roles: &[RoleRow<'_>],
    ) -> Client {
        let make = async |resource: &str, body: Value| {
            maker.post(&format!("/api/management/v2/{resource}"), body).await.is(201).json()
        };
        let body =
            json!({ "name": name, "allowClientCredentialLogin": true, "subscriptionId": subscription });
        let app = make("ClientApp", body).await;
        let secret = make("ClientAppSecret", json!({ "clientAppId": app["id"] })).await;
        for (role, tenant, instance) in roles {
            let body = json!({
                "clientAppId": app["id"], "roleType": role,
                "applyToTenantId": tenant, "applyToIdpInstanceId": instance,
            });
            make("ClientAppRole", body).await;
        }
        let id = app["id"].as_str().unwrap_or_default();
        log_in(&self.anonymous, id, secret["secret"].as_str().unwrap_or_default()).await
    }

    /// Creates a subscription of another customer; returns its id.
    pub async fn other_subscription(&self, name: &str) -> Value {
        let customer = self.make("Customer", json!({ "name": name })).await;
        self.make("Subscription", json!({ "name": name, "customerId": customer["id"] })).await["id"].clone()
    }

    /// Creates a second user store with this name, in a subscription of another customer; returns its id.
    pub async fn other_store(&self, name: &'static str) -> Uuid {
        let subscription = self.other_subscription("other").await;
        let kinds = self.all("IdpType").await;
        let kind =
            kinds.as_array().and_then(|all| all.iter().find(|one| one["name"] == "UserStore")).cloned();
        let body = json!({
            "name": name, "subscriptionId": subscription, "idpTypeId": kind.unwrap_or_default()["id"],
        });
        let store = self.make("IdpInstance", body).await;
        store["id"].as_str().and_then(|id| id.parse().ok()).unwrap_or_default()
    }
}
