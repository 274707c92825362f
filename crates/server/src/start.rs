//! From a configuration to a server that serves.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::Pin,
    sync::{Arc, LazyLock, atomic::AtomicU32},
    time::Duration,
};

use chancery_auth::{TokenService, ensure_keys, ensure_root};
use chancery_fetch::{Limits as FetchLimits, Networks, Outbound, Policy, get};
use chancery_ledger::AuditKeys;
use chancery_management::{client_app::resource_key, option::add_new_entries};
use chancery_resource::{
    AppContext, AuditSigner, CursorKey, Fetch, ItemCache, MasterKey, MetadataSource, Problem, Scope, Tails,
};
use chancery_store::{Error, Figure, Mode, Store};
use chancery_web::{
    App, AppParts, Deprecation, Limits, Listener, Pages, SignInSettings, Tls, answer_probes_during_start,
    now, serve,
};
use serde_json::json;

use crate::{
    Config, Reload, RootAccess, StartError, build, console,
    database::{check_there, has_sealed_keys, on_database, open, open_existing, prepare_files},
    database_lock::DatabaseLock,
    erasure_list::ErasureList,
    first_start, installation,
    jobs::{self, Leases, ledger::learn_certificates, mail::MailSettings, supervise},
    key_file::{ensure_master_key, read_master_key},
    log, outbound, recover,
    server_context::server_context,
    services::{current_services, services},
    start_error::cause_of,
    trail_check::check_whole,
    webhook,
};

/// The metrics besides those of the edge, one list for each slice.
pub fn figures() -> &'static [&'static [Figure]] {
    static FIGURES: LazyLock<Vec<&'static [Figure]>> = LazyLock::new(|| {
        let own: [&[Figure]; 6] = [
            &chancery_mail::FIGURES,
            &jobs::sequence::FIGURES,
            &jobs::prune_events::FIGURES,
            &jobs::deliver::FIGURES,
            &jobs::ledger::FIGURES,
            &jobs::count::FIGURES,
        ];
        own.into_iter().chain(chancery_management::FIGURES.iter().copied()).collect()
    });
    &FIGURES
}

/// A server that runs, until it has stopped. In a box, because a program that starts a server would otherwise compile all of it again.
pub type Running = Pin<Box<dyn Future<Output = Result<(), StartError>> + Send>>;

/// A server that is listening and ready to serve.
pub struct Server {
    /// The server's public URL.
    pub public_url: String,
    /// The root access to print after the first start.
    pub root_access: RootAccess,
    app: Arc<App>,
    listener: Listener,
    /// The listeners of the metrics and of the console, where they have addresses of their own.
    others: Vec<Listener>,
    mail_settings: MailSettings,
    /// The list to which this process writes the ids of erased people.
    erasures: Option<ErasureList>,
    /// The lock of an embedded database, held for the server's lifetime.
    _lock: Option<DatabaseLock>,
}

impl Server {
    /// Opens the database, creates missing rows, listens.
    ///
    /// # Errors
    /// The message is for people.
    pub async fn start(config: &Config) -> Result<Self, StartError> {
        config.check_files().map_err(StartError::of)?;
        let lock = prepare_files(config)?;
        let tls = config.tls.as_ref().map(Tls::read).transpose();
        let tls = tls.map_err(|error| StartError::new("TLS cannot be served", error))?;
        let mut listener = bind(config.listen, tls).await?;
        let mut others = Vec::new();
        if let Some(address) = config.metrics_listen {
            others.push(bind(address, None).await?.for_metrics());
        }
        if let Some(address) = config.console_listen {
            others.push(bind(address, None).await?.with_tls_of(&listener));
            listener = listener.without_console();
        }
        let address = listener.address().map_err(|error| StartError::new("cannot listen", error))?;
        let public_url = config.public_url.clone().unwrap_or_else(|| url_of(listener.scheme(), address));
        tracing::info!(%address, "starting");
        let start = async {
            let master = ensure_master_key(&config.master_key_file, || has_sealed_keys(config)).await?;
            let store = open(config).await?;
            check_whole(&store, &master).await?;
            let status = installation::learn(&store, config).await?;
            let (master, outbound) = (master.in_era(&status.era), status.outbound);
            let assembled = Assembled { config, master, public_url: &public_url, outbound };
            let (app, root_access) = assemble(assembled, store).await?;
            // after the check that the master key is the right one
            let erasures = ErasureList::configured(config, &app.context.outbound, &app.context.master)?;
            Ok::<_, StartError>((app, root_access, erasures))
        };
        let start = answer_probes_during_start(&listener, &public_url, &config.limits, Box::pin(start));
        let (app, root_access, erasures) = start.await?;
        let app = Arc::new(app);
        let mail_settings = MailSettings {
            master: app.context.master.clone(),
            program: config.reset_program.clone(),
            networks: config.private_destinations.clone(),
        };
        if let Err(quiet) = app.context.outbound.permission() {
            app.note_warning("outbound", Some(quiet.to_string()));
        }
        Ok(Self { public_url, root_access, app, listener, others, mail_settings, erasures, _lock: lock })
    }

    /// The application, for programs that embed the server.
    pub fn app(&self) -> Arc<App> {
        Arc::clone(&self.app)
    }

    /// Whether people administer by pages here.
    pub fn has_console(&self) -> bool {
        self.app.console.is_some()
    }

    /// The parts that can be reloaded while it runs.
    pub fn reload(&self) -> Reload {
        Reload { app: Arc::clone(&self.app), tls: self.listener.tls() }
    }

    /// Serves until `stop` resolves with the time to drain, finishes running requests, closes the database.
    ///
    /// # Errors
    /// The database serves newer programs alone: an upgrade has raised the floor of its schema above this one.
    pub fn run(self, stop: impl Future<Output = Duration> + Send + 'static) -> Running {
        Box::pin(self.run_until(Box::pin(stop)))
    }

    async fn run_until(self, stop: Pin<Box<dyn Future<Output = Duration> + Send>>) -> Result<(), StartError> {
        let store = self.app.store.clone();
        let leases = Leases::new(&store, now, &self.public_url).of_era(self.app.context.master.era());
        let leases = Arc::new(leases);
        let mut jobs = jobs::jobs(&self.app, &self.mail_settings, now);
        jobs.extend(self.erasures.map(|list| jobs::erasures::job(&self.app, list)));
        let app = Arc::clone(&self.app);
        let doing = tokio::spawn(supervise(Arc::clone(&app), Arc::clone(&leases), jobs));
        let others = self.others.into_iter();
        let others: Vec<_> = others
            .map(|listener| tokio::spawn(serve(Arc::clone(&self.app), listener, std::future::pending())))
            .collect();
        let mut outdated = None;
        let ending = async {
            let drain = tokio::select! {
                drain = stop => drain,
                why = leases.outdated() => {
                    tracing::error!(why, "this program is too old for the database by now");
                    outdated = Some(StartError::new("this program must end", why));
                    Duration::ZERO
                }
            };
            app.stopping.send_replace(true);
            drain
        };
        serve(self.app, self.listener, ending).await;
        jobs::finished(&app).await;
        doing.abort();
        // no run begins any more; a write in progress ends by itself, and jobs can be dropped at any await
        let _ = doing.await;
        leases.release().await;
        for other in others {
            other.abort();
        }
        // closing blocks on threads
        let _ = tokio::task::spawn_blocking(move || store.close()).await;
        outdated.map_or(Ok(()), Err)
    }
}

/// Makes sure that the root client app can get tokens, and gives it a new secret: for when no administrator
/// can any more. The server need not run; with an embedded database it must not.
///
/// # Errors
/// The message is for people.
pub async fn recover_root(config: &Config) -> Result<RootAccess, StartError> {
    check_there(&config.database)?;
    let master = read_master_key(&config.master_key_file)?;
    let (_lock, store) = open_existing(config).await?;
    let is_used = store.run("Recover", Mode::Quick, None, |tx| {
        tx.one("SELECT 1 FROM client_app LIMIT 1", &[], |_| Ok(())).map(|found| found.is_some())
    });
    if !is_used.await.map_err(|error: Error| StartError::new("cannot read the database", error))? {
        return Err(StartError::new("there is no client app in this database", "name the server's own"));
    }
    let assembled = Assembled { config, master, public_url: "http://localhost", outbound: Outbound::Off };
    let (app, _) = assemble(assembled, store.clone()).await?;
    let mut acting = server_context(&app.context, Scope::Everything);
    let root_access =
        store.run("Recover", Mode::Write, None, move |tx| recover::recover(&mut acting, tx)).await;
    let _ = tokio::task::spawn_blocking(move || store.close()).await;
    root_access.map_err(|problem: Problem| StartError::new("cannot recover", cause_of(problem)))
}

/// Migrates the schema of the database, and does nothing else. Returns the number of applied migrations.
///
/// # Errors
/// The message is for people.
pub async fn migrate(config: &Config) -> Result<usize, StartError> {
    let _lock = prepare_files(config)?;
    let (database, settings) = (config.database.clone(), config.store);
    on_database(move || Store::migrate(&database, settings)).await
}

/// The default public URL. On loopback its host is `localhost`: browsers create passkeys for names alone.
fn url_of(scheme: &str, address: SocketAddr) -> String {
    let is_loopback = address.ip() == Ipv4Addr::LOCALHOST || address.ip() == Ipv6Addr::LOCALHOST;
    if scheme == "http" && is_loopback {
        return format!("http://localhost:{}", address.port());
    }
    format!("{scheme}://{address}")
}

/// The URL of the server for a command, which has no listener.
pub fn url_of_config(config: &Config) -> String {
    config.public_url.clone().unwrap_or_else(|| url_of("http", config.listen))
}

/// Creates a link by which the first administrator signs in; a former one is revoked.
///
/// # Errors
/// The message is for people.
pub async fn console_link(config: &Config) -> Result<String, StartError> {
    let _lock = prepare_files(config)?;
    let master = read_master_key(&config.master_key_file)?;
    let store = open(config).await?;
    let public_url = url_of_config(config);
    let assembled = Assembled { config, master, public_url: &public_url, outbound: Outbound::Off };
    let (app, _) = assemble(assembled, store.clone()).await?;
    let acting = server_context(&app.context, Scope::Everything);
    let link = store.run("ConsoleLink", Mode::Write, None, move |tx| console::setup_link(&acting, tx)).await;
    let _ = tokio::task::spawn_blocking(move || store.close()).await;
    let path = link.map_err(|problem: Problem| StartError::new("cannot make a link", cause_of(problem)))?;
    let path = path.ok_or_else(|| {
        StartError::new(
            "cannot make a link",
            "a person is SystemAdmin already, and lets others in by the console",
        )
    })?;
    Ok(format!("{public_url}{path}"))
}

async fn bind(address: SocketAddr, tls: Option<Arc<Tls>>) -> Result<Listener, StartError> {
    let bound = Listener::bind(address, tls).await;
    bound.map_err(|error| StartError::new(format!("cannot listen on {address}"), error))
}

/// The components of an application, besides its store.
pub struct Assembled<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The master key; of a server, which issues tokens, in the era of the installation.
    pub master: MasterKey,
    /// The server's public URL.
    pub public_url: &'a str,
    /// Whether outbound traffic is enabled.
    pub outbound: Outbound,
}

/// Creates the application, and the rows that are missing in the database.
///
/// # Errors
/// The message is for people.
pub async fn assemble(assembled: Assembled<'_>, store: Store) -> Result<(App, RootAccess), StartError> {
    let Assembled { config, master, public_url, outbound } = assembled;
    let failed = |error: Error| StartError::new("cannot read the database", error);
    let keys = store.run("EnsureKeys", Mode::Write, None, move |tx| {
        let master = ensure_root(tx, &master, now())?;
        let keys = ensure_keys(tx, &master, now())?;
        let last = tx.one("SELECT max(rid) FROM audit_entry", &[], |row| {
            if row.is_null(0)? { Ok(0) } else { row.int(0) }
        })?;
        Ok::<_, Error>((keys, master, last.unwrap_or(0)))
    });
    let ((keyring, audit_key), master, last) = keys.await.map_err(failed)?;
    let audit_keys = AuditKeys::from_jwks(&json!({ "keys": keyring.audit_jwks }).to_string())
        .map_err(|error| StartError::new("the keys of the audit trail", error))?;
    let cursors = CursorKey::new(&master.derive("cursor"))
        .ok_or_else(|| StartError::new("cannot start", "the cursor key is not usable"))?;
    let metadata = metadata_source(config)?;
    let policy = Policy::within(config.private_destinations.clone());
    let token_service = TokenService::new(keyring, public_url.to_owned(), master.clone(), policy);
    let services = if config.version_1 { services() } else { current_services() };
    let context = Arc::new(AppContext {
        master,
        hashing: config.hashing,
        services,
        proofs: config.proofs,
        has_reset_program: config.reset_program.is_some(),
        requests_client_certificates: config.tls.as_ref().is_some_and(|tls| tls.client_authorities.is_some()),
        audit_signer: AuditSigner::new(audit_key, audit_keys, last),
        cursors,
        counter: AtomicU32::new(0),
        public_url: public_url.to_owned(),
        metadata,
        snapshot: ItemCache::default(),
        role_carriers: ItemCache::default(),
        tails: Tails::default(),
        outbound,
        send_webhook: webhook::sender(config.event_networks.clone()),
        send_text: crate::text_message::sender(config.private_destinations.clone()),
        send_outbound: outbound::requester(config.private_destinations.clone()),
        provider_addresses: config.provider_addresses.clone(),
        preview_tokens: chancery_signin::preview_tokens,
    });
    let (mut acting, secret) =
        (server_context(&context, Scope::Everything), config.root_client_secret.clone());
    let has_console = config.console && config.sign_in;
    let root_access = store.run("FirstStart", Mode::Write, None, move |tx| {
        // entries of the catalogue first: rows created next have all of them
        add_new_entries(&acting, tx)?;
        let mut root_access = first_start::ensure(&mut acting, tx, secret.as_ref())?;
        resource_key::claim_unowned(tx)?;
        if has_console {
            console::ensure(&acting, tx)?;
            root_access.setup = if root_access.is_first { console::setup_link(&acting, tx)? } else { None };
        }
        Ok(root_access)
    });
    let root_access = root_access
        .await
        .map_err(|problem: Problem| StartError::new("cannot prepare the database", cause_of(problem)))?;
    let limits = Limits {
        public_rate: config.public_rate_limit,
        failed_sign_ins: config.failed_sign_ins,
        ..config.limits
    };
    let app = App::new(AppParts {
        store,
        token_service,
        context,
        limits,
        services,
        figures: figures(),
        build: (build::VERSION, build::COMMIT),
        sign_in: SignInSettings { is_on: config.sign_in, admin_acr: config.admin_acr },
        console_lifetimes: config.console_lifetimes,
        console: has_console.then_some(chancery_console::answer as Pages),
        scim: Some(chancery_provisioning::answer as Pages),
        trusted_proxies: config.trusted_proxies.clone(),
        deprecation: Deprecation::new(config.version_1_deprecated, config.version_1_sunset),
        access_log: config.access_log,
        dropped_lines: log::dropped,
    });
    let app = app.map_err(|error| StartError::new("two operations share a path", error))?;
    learn_certificates(&app, &app.store, now()).await.map_err(failed)?;
    Ok((app, root_access))
}

/// The limits of fetching authenticator metadata, which are 7 MB.
const METADATA: FetchLimits = FetchLimits { bytes: chancery_trust::MAX_BYTES, seconds: 60 };

/// The source of authenticator metadata. It may be in the server's own network: whoever configures it
/// controls the server.
fn metadata_source(config: &Config) -> Result<MetadataSource, StartError> {
    let fetch = config.mds_url.clone().map(|url| {
        let plain_loopback = url.starts_with("http://");
        let policy = Policy { networks: Networks::all(), plain_loopback, ..Policy::default() };
        let known = Arc::new((url, policy));
        let fetch: Fetch = Arc::new(move || {
            let known = Arc::clone(&known);
            Box::pin(
                async move { get(&known.0, METADATA, &known.1).await.map_err(|failure| failure.to_string()) },
            )
        });
        fetch
    });
    let root = config.metadata_root().map_err(StartError::of)?;
    Ok(MetadataSource { fetch, root: root.map(Arc::new) })
}
