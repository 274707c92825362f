//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::{
    AuditCommand, ConfigurationCommand,
    adopt::ADOPT_HELP,
    backup::BACKUP_HELP,
    build::described,
    check_upgrade::CHECK_UPGRADE_HELP,
    copy::{COPY_HELP, CopyCommand},
    key::KeyCommand,
    login::{LOGIN_HELP, Login, TOKEN_HELP},
    options::ConfigArguments,
    restore::{RESTORE_HELP, RestoreOptions},
};

const AFTER_HELP: &str = "\
Examples:
  chancery
      Starts on 127.0.0.1:8080 with an embedded database in ./data. The first start prints the
      secret of the root client, once.
  chancery --listen 0.0.0.0:8443 --tls-certificate cert.pem --tls-key key.pem
      Listens on all interfaces, with TLS.
  CHANCERY_DATABASE=postgres://chancery@localhost/chancery chancery serve
      Stores the data in PostgreSQL. Any number of servers may share it, with the same master key
      file.
  chancery --config chancery.toml check-config
      Prints the errors of a configuration, or the configuration as it takes effect.
  chancery audit export --store default --output trail.jsonl
  chancery audit verify trail.jsonl --keys audit-keys.json
      Verifies an audit trail; see chancery audit verify --help.
  chancery backup --output /backup/monday
  chancery restore /backup/monday --replace --erasures /lists/erased
      Backs a database up while its server runs, and restores the backup; see the --help of each.
  chancery login https://id.example.com --client 01a20629-644b-7002-8980-dbcc4960bb91
  curl -H \"authorization: Bearer $(chancery token)\" https://id.example.com/api/management/v2/Tenant
      Calls the API with your own roles; chancery login --help lists what the client app needs.
  chancery export configuration --server https://id.example.com
  chancery plan configuration --server https://id.example.com
      Manages the configuration of a server as files; see chancery apply --help.

Every option is also a key of the TOML file, with underscores: listen = \"127.0.0.1:8080\".
A flag overrides the environment, and the environment overrides the file.
Secrets can also come from files that others cannot read: CHANCERY_ROOT_CLIENT_SECRET_FILE and
CHANCERY_DATABASE_FILE, or systemd credentials named root_client_secret, database, master_key and tls_key
($CREDENTIALS_DIRECTORY). A secret that is given twice is refused.";

const CHECK_CONFIG_HELP: &str = "\
Reads the options as a start does, and the files that they name: certificates and keys for TLS and for the
connection to PostgreSQL, the root certificate of FIDO metadata, the reset program, and the master key if it
exists. No database or port is opened, and nothing is written. Run it as the server's user, who must be able to
read the files.

Exit status: 0 the configuration is valid, though standard error may have warnings about unknown variables;
1 it is invalid, and standard error says why.

Example:
  chancery --config chancery.toml check-config";

const RECOVER_HELP: &str = "\
For operators, if nobody can get a token as SystemAdmin any more, for example because the secret of the client
app root is lost.

The client app root gets a new secret, which is printed once. Its other secrets and its authentication
configuration are removed, and settings that prevent it from getting tokens are reset. If no client app named
root is SystemAdmin, a new one is created: root, or \"root 2\" and so on if the name is in use. Each change is
in the audit trail of the configuration.

The command needs the database and the master key: run it as the server's user. Stop a server with an embedded
database first; servers on PostgreSQL may run.

Example:
  chancery --config chancery.toml recover
      Prints the id and the new secret of the root client, for a request of a token:
  curl -u ID:SECRET -d grant_type=client_credentials https://id.example.com/connect/token";

const CONSOLE_LINK_HELP: &str = "\
For the operator of a new server, if the setup link of the first start was lost or has expired. Whoever opens
the link in a browser can create the first administrator.

The link is valid for an hour, once, and only as long as no person is SystemAdmin. A new link invalidates the
previous one. It begins with the public URL of the configuration (--public-url); otherwise open its path at the
URL of the server.

The command needs the database and the master key: run it as the server's user. Stop a server with an embedded
database first; servers on PostgreSQL may run.

Example:
  chancery --config chancery.toml --public-url https://id.example.com console-link";

const MIGRATE_HELP: &str = "\
A start migrates the schema, too, unless CHANCERY_MIGRATE=off. Use this command if the servers' database role
has no DDL rights, or to choose the time: run it as the role that owns the tables, before the new servers
start. It needs the database only, not the master key. Each migration is logged with its name and duration.

On PostgreSQL, servers of the previous release may run at the same time: the command waits for a lock for half
a second at most, builds indexes concurrently, and changes many rows in pieces. If it is interrupted, the next
run continues where it stopped. If other sessions hold locks for ten minutes, it fails and names the sessions.
Stop a server with an embedded database first.

Examples:
  chancery --config chancery.toml migrate
  CHANCERY_DATABASE=postgres://owner@db/chancery chancery migrate
      Then start servers as another role, with CHANCERY_MIGRATE=off. That role needs to read and write the
      tables: as the owner, once and before the first migration, execute
      ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO server;";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "chancery", about = "Chancery: an identity administration server", after_help = AFTER_HELP, version = described())]
pub struct Arguments {
    /// What to do; without it, serve.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Where the configuration is.
    #[command(flatten)]
    pub config: ConfigArguments,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Runs the server until it is told to stop (SIGTERM or Ctrl-C).
    Serve,
    /// Checks the configuration and its files, and prints it as it takes effect, secrets hidden.
    #[command(after_help = CHECK_CONFIG_HELP)]
    CheckConfig,
    /// Lists the rows of a database that this release would refuse, before an upgrade.
    #[command(after_help = CHECK_UPGRADE_HELP)]
    CheckUpgrade,
    /// Migrates the schema of the database, and exits.
    #[command(after_help = MIGRATE_HELP)]
    Migrate,
    /// Gives the root client app a new secret, if nobody can get a token as SystemAdmin any more.
    #[command(after_help = RECOVER_HELP)]
    Recover,
    /// Creates another setup link for the first administrator, if that of the first start has expired.
    #[command(after_help = CONSOLE_LINK_HELP)]
    ConsoleLink,
    /// Moves an installation to another database: from SQLite to PostgreSQL, and back.
    #[command(after_help = COPY_HELP)]
    Copy(CopyCommand),
    /// Rotates the master key.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Backs an embedded database up to a file while its server runs, and checks the copy.
    #[command(after_help = BACKUP_HELP)]
    Backup {
        /// The file to write, readable by its owner only; the manifest is written to FILE.manifest.json
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Restores a backup, ends all tokens and sessions, and repeats the erasures since the backup.
    #[command(after_help = RESTORE_HELP)]
    Restore(RestoreOptions),
    /// Records the current database and public URL as those of the installation, and so enables outbound traffic on a copy.
    #[command(after_help = ADOPT_HELP)]
    Adopt,
    /// Exports an audit trail, or verifies an exported one offline.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Manages the configuration of a server as files: writes them, compares them, applies them.
    #[command(flatten)]
    Configuration(ConfigurationCommand),
    /// Signs a person in to a server, for scripts: prints a URL and a code, and stores the tokens.
    #[command(after_help = LOGIN_HELP)]
    Login(Login),
    /// Prints a valid access token of the login.
    #[command(after_help = TOKEN_HELP)]
    Token,
    /// Ends the login: its tokens are revoked and removed.
    Logout,
    /// Prints the version, the commit that it was built from, and the version of the schema that it creates.
    Version,
}
