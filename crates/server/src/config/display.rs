//! The configuration as it takes effect, for people: secrets are hidden.

use std::path::PathBuf;

use chancery_fetch::Networks;
use chancery_store::Target;

use super::{Config, written};

impl Config {
    /// The configuration as TOML, secrets hidden.
    pub fn display(&self) -> String {
        let text = |value: &str| toml::Value::String(value.to_owned());
        let path = |value: &PathBuf| toml::Value::String(value.display().to_string());
        let mut table = toml::Table::new();
        table.insert("listen".into(), text(&self.listen.to_string()));
        table.insert("data_dir".into(), path(&self.data_dir));
        table.insert("database".into(), text(&display_target(&self.database)));
        table.insert(
            "database_connections".into(),
            toml::Value::Integer(i64::try_from(self.store.connections).unwrap_or(i64::MAX)),
        );
        table.insert("database_insecure".into(), text(if self.store.insecure { "on" } else { "off" }));
        table.insert("migrate".into(), text(if self.store.migrate { "on" } else { "off" }));
        let reserve = i64::try_from(self.store.disk_reserve >> 20).unwrap_or(i64::MAX);
        table.insert("disk_reserve".into(), toml::Value::Integer(reserve));
        table.insert("master_key_file".into(), path(&self.master_key_file));
        table.insert("log".into(), text(&self.log));
        table.insert("access_log".into(), text(self.access_log.name()));
        for (name, limit) in
            [("public_rate_limit", self.public_rate_limit), ("failed_sign_ins", self.failed_sign_ins)]
        {
            let limit = limit.map_or_else(|| "off".to_owned(), |limit| limit.to_string());
            table.insert(name.into(), text(&limit));
        }
        for (name, value) in [
            ("drain", self.drain.as_secs()),
            ("max_connections", self.limits.connections as u64),
            ("max_connections_per_address", self.limits.connections_per_address as u64),
            ("idle_time", self.limits.idle_time.as_secs()),
            ("answer_time", self.limits.answer_time.as_secs()),
            ("console_idle", self.console_lifetimes.idle.unsigned_abs() / 1000),
            ("console_session", self.console_lifetimes.longest.unsigned_abs() / 1000),
            ("max_body", (self.limits.body >> 20) as u64),
            ("max_batch_body", (self.limits.batch_body >> 20) as u64),
        ] {
            table.insert(name.into(), toml::Value::Integer(i64::try_from(value).unwrap_or(i64::MAX)));
        }
        table.insert("sign_in".into(), text(if self.sign_in { "on" } else { "off" }));
        table.insert("console".into(), text(if self.console { "on" } else { "off" }));
        table.insert("admin_acr".into(), text(self.admin_acr));
        table.insert("version_1".into(), text(if self.version_1 { "on" } else { "off" }));
        table.insert("version_1_deprecated".into(), text(&written(self.version_1_deprecated)));
        if let Some(sunset) = self.version_1_sunset {
            table.insert("version_1_sunset".into(), text(&written(sunset)));
        }
        table.insert("identity_replacement_proofs".into(), text(self.proofs.name()));
        for (name, value) in [
            ("password_memory", self.hashing.memory_kib()),
            ("password_iterations", self.hashing.iterations()),
            ("password_parallelism", self.hashing.parallelism()),
        ] {
            table.insert(name.into(), toml::Value::Integer(value.into()));
        }
        if let Some(program) = &self.reset_program {
            table.insert("reset_program".into(), path(program));
        }
        for (name, networks) in [
            ("private_destinations", &self.private_destinations),
            ("event_networks", &self.event_networks),
            ("trusted_proxies", &self.trusted_proxies),
        ] {
            if *networks != Networks::default() {
                table.insert(name.into(), text(&networks.to_string()));
            }
        }
        table.insert("outbound".into(), text(if self.outbound.is_off() { "off" } else { "auto" }));
        if let Some(list) = &self.erasure_list {
            table.insert("erasure_list".into(), path(list));
        }
        if let Some(url) = &self.mds_url {
            table.insert("mds_url".into(), text(url));
        }
        if let Some((root, name)) = &self.mds_root {
            table.insert("mds_root".into(), path(root));
            table.insert("mds_name".into(), text(name));
        }
        if let Some(url) = &self.public_url {
            table.insert("public_url".into(), text(url));
        }
        for (name, listen) in
            [("metrics_listen", &self.metrics_listen), ("console_listen", &self.console_listen)]
        {
            if let Some(address) = listen {
                table.insert(name.into(), text(&address.to_string()));
            }
        }
        if let Some(tls) = &self.tls {
            table.insert("tls_certificate".into(), path(&tls.certificate));
            table.insert("tls_key".into(), path(&tls.key));
            if let Some(file) = &tls.client_authorities {
                table.insert("tls_client_ca".into(), path(file));
            }
        }
        if self.root_client_secret.is_some() {
            table.insert("root_client_secret".into(), text("(hidden)"));
        }
        toml::to_string(&table).unwrap_or_default()
    }
}

/// A connection string without its password.
fn display_target(target: &Target) -> String {
    match target {
        Target::Sqlite(path) => format!("sqlite:{}", path.display()),
        Target::Postgres(url) => match (url.find("://"), url.rfind('@')) {
            (Some(scheme), Some(at)) => {
                let user = url.get(scheme + 3..at).unwrap_or_default().split(':').next().unwrap_or_default();
                let (start, end) =
                    (url.get(..scheme + 3).unwrap_or_default(), url.get(at..).unwrap_or_default());
                format!("{start}{user}{end}").split("password=").next().unwrap_or_default().to_owned()
            }
            _ => url.split("password=").next().unwrap_or_default().to_owned(),
        },
    }
}
