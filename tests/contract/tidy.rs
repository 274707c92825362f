//! Checks of the architecture that the compiler does not do: see ARCHITECTURE.md.

use std::{collections::BTreeSet, fs, path::PathBuf};

use chancery::services;
use chancery_provisioning::shapes as provisioned;
use chancery_record::{Column, Kind};
use chancery_resource::{Action, NestedFields, Shape};
use chancery_store::{Error, Mode, StateTable};
use chancery_testkit::{Engine, World, no_arguments, on_both_engines, run_with};
use toml::Table;

use crate::sources::{crates, root, sources};

/// Which crate may name which dependency.
#[test]
fn dependencies_point_downward() {
    let allowed = [
        ("rusqlite", &["store"][..]),
        ("lettre", &["mail"]),
        ("webauthn-rs-core", &["passkey"]),
        ("argon2", &["credential"]),
        ("image", &["picture"]),
        ("chancery-application", &["userstore", "management", "provisioning", "signin"]),
        ("chancery-ledger", &["resource", "userstore", "management", "server"]),
        ("chancery-credential", &["resource", "userstore", "signin", "server", "testkit"]),
        // itself, for its own tests
        ("chancery-mail", &["mail", "userstore", "server", "testkit"]),
        ("chancery-passkey", &["userstore"]),
        ("chancery-picture", &["userstore"]),
        ("chancery-presentation", &["console", "management", "web"]),
        ("x509-parser", &["certificate"]),
        ("chancery-certificate", &["resource", "auth", "federation", "fuzzed", "management", "server"]),
        ("chancery-oauth", &["auth", "console", "federation", "jwe", "management", "signin"]),
        // the addresses of public providers are part of the configuration
        ("chancery-federation", &["management", "resource", "server", "signin", "testkit", "web"]),
        ("chancery-jwe", &["federation", "management"]),
        ("chancery-claims", &["management", "signin"]),
        ("chancery-flow", &["signin"]),
        ("chancery-trust", &["passkey", "management", "userstore", "server"]),
        ("chancery-fetch", &["resource", "auth", "mail", "signin", "web", "server"]),
        // testkit creates the databases of tests
        ("tokio-postgres", &["store", "testkit"]),
        ("rustls-webpki", &["trust"]),
        ("hyper", &["web", "fetch", "testkit"]),
        // mail and testkit only for servers of tests
        ("tokio-rustls", &["web", "fetch", "mail", "store", "testkit"]),
        (
            "chancery-store",
            // not the slices: a transaction cannot write rows of resources for them
            &["resource", "auth", "console", "mail", "signin", "web", "server", "testkit"],
        ),
        (
            "chancery-resource",
            &[
                "auth",
                "application",
                "userstore",
                "management",
                "provisioning",
                "scim",
                "signin",
                "v1",
                "web",
                "webhook",
                "configuration",
                "console",
                "server",
                "testkit",
                "fuzzed",
            ],
        ),
        ("chancery-scim", &["auth", "fuzzed", "management", "provisioning", "userstore"]),
        ("chancery-webhook", &["userstore", "management", "server"]),
        ("chancery-auth", &["provisioning", "signin", "web", "console", "server", "testkit"]),
        ("chancery-userstore", &["fuzzed", "provisioning", "signin", "v1", "console", "server"]),
        // configuration only for its tests, which walk the operations
        ("chancery-management", &["configuration", "provisioning", "signin", "v1", "console", "server"]),
        ("chancery-configuration", &["console", "server"]),
        ("chancery-v1", &["server"]),
        ("chancery-signin", &["web", "console", "server"]),
        ("chancery-web", &["console", "provisioning", "server", "testkit"]),
        // the testkit asks whether messages are translated
        ("chancery-console", &["server", "testkit"]),
        ("chancery-provisioning", &["server", "testkit"]),
    ];
    for (name, folder) in crates() {
        let manifest: Table = fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap();
        let named = dependencies(&manifest);
        for (dependency, crates) in allowed {
            let is_named = named.iter().any(|name| name == dependency);
            assert!(!is_named || crates.contains(&name.as_str()), "crates/{name} must not name {dependency}");
        }
    }
}

/// Only these modules write tables of resources, entries and events: all others write tables of state.
#[test]
fn only_the_engine_writes_rows_of_resources() {
    let expected = [
        "audit/compaction",
        "audit/entry",
        "audit/event",
        "audit/person",
        "write/change",
        "write/deletion",
        "write/relate",
        "write/reseal",
    ];
    let expected: BTreeSet<PathBuf> =
        expected.iter().map(|module| root().join(format!("crates/resource/src/{module}.rs"))).collect();
    let uses_raw = |text: &str| text.contains("raw::") && text.contains("chancery_store");
    let writers = sources(&root().join("crates")).into_iter().filter(|(path, text)| {
        // testkit prepares the databases of tests
        !path.starts_with(root().join("crates/testkit")) && uses_raw(text)
    });
    assert_eq!(writers.map(|(path, _)| path).collect::<BTreeSet<_>>(), expected);
}

/// The packages that a manifest names, under any alias and for any target.
fn dependencies(manifest: &Table) -> Vec<String> {
    let mut all = Vec::new();
    for (key, value) in manifest {
        let Some(table) = value.as_table() else { continue };
        if !key.ends_with("dependencies") {
            all.extend(dependencies(table));
            continue;
        }
        all.extend(table.iter().map(|(name, value)| {
            value.get("package").and_then(|package| package.as_str()).unwrap_or(name).to_owned()
        }));
    }
    all
}

/// Sign-ins cache what these files read until the security epoch advances, so each write of it advances the epoch.
#[test]
fn writes_of_cached_sign_in_data_advance_the_epoch() {
    let shapes = shapes();
    for file in ["crates/signin/src/client_app/rows.rs", "crates/management/src/claim_rule/in_force.rs"] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let words: Vec<&str> = text
            .split(|one: char| !one.is_ascii_alphanumeric() && one != '_')
            .filter(|one| !one.is_empty())
            .collect();
        let read = words.windows(2).filter(|pair| ["FROM", "JOIN"].contains(&pair[0])).map(|pair| pair[1]);
        // `{table}` in a format is one of the named tables
        let tables: BTreeSet<&str> = read.filter(|name| *name != "table").collect();
        assert!(tables.len() > 1, "{file}");
        for table in tables {
            let writes = |shape: &&&Shape| {
                shape.table == table || shape.relations.iter().any(|one| one.table == table)
            };
            let of: Vec<_> = shapes.iter().filter(writes).collect();
            assert!(!of.is_empty(), "{file} reads {table}");
            for shape in of {
                let written = shape.base.unwrap_or(*shape);
                assert!(written.writes.bumps_epoch, "{file} reads {table} of {}", shape.name);
            }
        }
    }
}

/// `cargo run` passes the variables of the build to the program, which would warn of an unknown setting.
#[test]
fn the_build_sets_no_variable_that_looks_like_a_setting() {
    for (path, text) in sources(&root().join("crates")) {
        let is_build = path.file_name().is_some_and(|name| name == "build.rs");
        assert!(!is_build || !text.contains("rustc-env=CHANCERY_"), "{}", path.display());
    }
}

/// Only functions that take a `Permission` send something to other systems. Requests without one are listed here, and only read.
#[test]
fn nothing_is_sent_without_permission() {
    let reading = [
        "auth/src/remote_keys.rs",
        "server/src/configuration/server.rs",
        "server/src/outbound.rs",
        "server/src/login/remote.rs",
        "server/src/start.rs",
    ];
    // behind the permission: its purpose, and the stores' own connections
    let behind = [
        "fetch/src/",
        "mail/src/send.rs",
        "mail/src/program.rs",
        "mail/src/sink/",
        "testkit/src/",
        // it runs while the program is built
        "server/build.rs",
    ];
    let asks = |text: &str| {
        let of_fetch = text.split("use chancery_fetch::").skip(1).filter_map(|rest| rest.split(';').next());
        of_fetch
            .flat_map(|names| names.split(|one: char| !one.is_alphanumeric() && one != '_'))
            .any(|name| ["send_request", "exchange", "get"].contains(&name))
    };
    for (path, text) in sources(&root().join("crates")) {
        let name = path.strip_prefix(root().join("crates")).unwrap().to_str().unwrap().to_owned();
        if behind.iter().any(|part| name.starts_with(part)) || name.contains("/tests/") {
            continue;
        }
        assert!(!asks(&text) || reading.contains(&name.as_str()), "{name} asks others: is it listed?");
        for word in [
            "process::Command",
            "TcpStream::connect",
            "chancery_fetch::send_request",
            "chancery_fetch::exchange",
        ] {
            assert!(!text.contains(word), "{name} has {word}");
        }
    }
}

/// Fields are named by their handles (`Group::NAME`), which do not compile misspelt; a text would find nothing
/// silently.
#[test]
fn no_field_is_found_by_its_columns_text() {
    for part in ["application", "userstore", "management", "v1", "server"] {
        for (path, text) in sources(&root().join("crates").join(part)) {
            for word in [".column == \"", ".column != \"", "match field.column"] {
                assert!(!text.contains(word), "{} has {word}", path.display());
            }
        }
    }
}

/// The console names no table and no statement: it works by operations. Its script knows no resource.
#[test]
fn the_console_knows_no_table_and_its_script_no_resource() {
    let console = root().join("crates/console");
    for (path, text) in sources(&console.join("src")) {
        for word in ["SELECT ", "INSERT INTO", "UPDATE ", "DELETE FROM", " JOIN "] {
            assert!(!text.contains(word), "{} has {word}", path.display());
        }
    }
    let script = fs::read_to_string(console.join("assets/console.js")).unwrap();
    let words: BTreeSet<&str> = script.split(|one: char| !one.is_ascii_alphanumeric()).collect();
    // browsers have events, too
    for shape in shapes().into_iter().filter(|shape| shape.name != "Event") {
        assert!(!words.contains(shape.name), "console.js names {}", shape.name);
    }
}

/// Every module begins with a description.
#[test]
fn every_file_begins_with_a_description() {
    for (path, text) in sources(&root().join("crates")) {
        assert!(text.starts_with("//! "), "{}", path.display());
    }
}

/// Operators read the requirements of a release before they upgrade.
#[test]
fn the_changelog_begins_with_this_version_and_what_its_upgrade_needs() {
    let changelog = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let headings: Vec<&str> = changelog.lines().filter(|line| line.starts_with("##")).take(2).collect();
    let version = env!("CARGO_PKG_VERSION");
    assert!(headings[0].starts_with(&format!("## {version} ")), "{headings:?}, and this is {version}");
    assert_eq!(headings[1], "### Upgrade");
}

fn shapes() -> Vec<&'static Shape> {
    let mut shapes: Vec<&'static Shape> = Vec::new();
    for op in services().iter().flat_map(|service| service.all()) {
        if !shapes.iter().any(|shape| shape.name == op.shape.name) {
            shapes.push(op.shape);
        }
    }
    for at in 0.. {
        let Some(shape) = shapes.get(at).copied() else { break };
        let owner = shape.owner.map(|owner| owner.shape);
        for other in shape.relations.iter().map(|relation| relation.target).chain(owner) {
            if !shapes.iter().any(|shape| shape.name == other.name) {
                shapes.push(other);
            }
        }
    }
    shapes
}

/// Checks of shapes that types do not express: one key, at most one token, defaults that fit,
/// rules and relations that name existing fields.
#[test]
fn shapes_are_whole() {
    for shape in shapes() {
        let name = shape.name;
        assert_eq!(shape.fields.iter().filter(|field| field.access.key).count(), 1, "{name}: one key");
        assert!(shape.fields.iter().filter(|field| field.is_token()).count() <= 1, "{name}: one token");
        for field in shape.fields {
            assert!(!field.about.trim().is_empty(), "{name}.{} says what it is", field.column);
            let fits = matches!(
                (field.access.default, field.kind),
                (chancery_record::DefaultValue::None, _)
                    | (chancery_record::DefaultValue::Bool(_), Kind::Bool)
                    | (chancery_record::DefaultValue::Int(_), Kind::Int { .. })
                    | (chancery_record::DefaultValue::Text(_), Kind::Text(_) | Kind::Choice(_))
                    | (chancery_record::DefaultValue::Text("{}"), Kind::Pairs(_))
            ) || matches!(
                (field.access.default, field.kind),
                (chancery_record::DefaultValue::Text(list), Kind::Texts(_)) if chancery_record::list_of(list).is_some()
            );
            assert!(fits, "{name}.{}: the default fits", field.column);
            let has_value = field.nullable
                || field.access.create
                || field.is_token()
                || field.access.column != Column::Own;
            let never_made = !shape.fields.iter().any(|field| field.access.patch);
            assert!(
                has_value || never_made || field.access.default != chancery_record::DefaultValue::None,
                "{name}.{} has a value from the start",
                field.column
            );
        }
        for relation in shape.relations {
            let shown = match relation.shown {
                NestedFields::Names => 2,
                NestedFields::Fields(fields) => fields.len(),
                NestedFields::All => continue,
            };
            assert_eq!(relation.fields().count(), shown, "{name}.{} shows its target's", relation.name);
        }
    }
    for op in services().iter().flat_map(|service| service.all()) {
        if let Action::Relate(relation, _) = op.action {
            assert!(op.shape.relation(relation.name).is_some(), "{}", op.name);
        }
        if let Action::ReplaceMembers(fields) = op.action {
            assert!(fields.iter().all(|field| op.shape.own(field).is_some()), "{}", op.name);
        }
    }
}

/// A deletion that the database would refuse because of children is refused by name before: a parent knows its
/// children.
#[test]
fn parents_know_their_children() {
    run_with(Engine::Sqlite, no_arguments, |world| Box::pin(check_children(world)));
}

async fn check_children(world: World) {
    let text = "SELECT m.name, k.\"table\", k.\"from\" FROM sqlite_master m \
            JOIN pragma_foreign_key_list(m.name) k WHERE m.type = 'table' AND k.on_delete = 'NO ACTION'";
    let keys = world.app.store.run("Test", Mode::Long, None, move |tx| {
        let mut keys = Vec::new();
        tx.query(text, &[], |row| {
            keys.push([row.text(0)?.to_owned(), row.text(1)?.to_owned(), row.text(2)?.to_owned()]);
            Ok(())
        })?;
        Ok::<_, Error>(keys)
    });
    let keys = keys.await.unwrap();
    assert!(keys.len() > 20, "{keys:?}");
    let shapes = shapes();
    for [table, parent, column] in keys {
        // the owner of an option is of the same subscription, and is deleted with it; the target of a
        // subscription is of that one
        if table == "option_value" || column == "apply_to_subscription_id" {
            continue;
        }
        let known =
            shapes.iter().filter(|shape| shape.table == parent).flat_map(|shape| shape.deletes.children);
        let mut known = known.filter(|child| child.column == column);
        assert!(known.any(|child| child.table.contains(&table)), "{parent} does not know {table}.{column}");
    }
}

on_both_engines! {
    /// Every table belongs to a resource, a relation or to state, and never to two of these: so a transaction of a slice,
    /// which writes tables of state alone, writes no row of a resource but through the engine.
    async fn a_table_of_state_is_no_resource(world: World) {
        let names = match world.engine {
            Engine::Sqlite => "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
            Engine::Postgres => {
                "SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema()"
            }
        };
        let read = world.app.store.run("Test", Mode::Long, None, move |tx| {
            let mut all = BTreeSet::new();
            tx.query(names, &[], |row| {
                all.insert(row.text(0)?.to_owned());
                Ok(())
            })?;
            Ok::<_, Error>(all)
        });
        let there = read.await.unwrap();
        let shapes = shapes();
        // a text in parentheses is a query over tables of state: it is only read
        let tables = shapes.iter().map(|shape| shape.table);
        let pairs = shapes.iter().copied().chain(provisioned());
        let pairs = pairs.flat_map(|shape| shape.relations).map(|relation| relation.table);
        let tables = tables.chain(pairs).filter(|table| !table.starts_with('('));
        let resources: BTreeSet<String> = tables.map(str::to_owned).collect();
        let state: BTreeSet<String> = StateTable::ALL.iter().map(|table| table.name().to_owned()).collect();
        assert_eq!(resources.intersection(&state).next(), None);
        let own = ["schema_migration", "security_epoch", "write_gate"].map(str::to_owned);
        let known: BTreeSet<String> = resources.into_iter().chain(state).chain(own).collect();
        assert_eq!(known, there);
    }

    /// The unique indexes that shapes name exist.
    async fn unique_indexes_exist(world: World) {
        let text = match world.engine {
            Engine::Sqlite => "SELECT name FROM sqlite_master WHERE type = 'index'",
            Engine::Postgres => "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()",
        };
        let there = world.app.store.run("Test", Mode::Long, None, move |tx| {
            let mut there = Vec::new();
            tx.query(text, &[], |row| {
                there.push(row.text(0)?.to_owned());
                Ok(())
            })?;
            Ok::<_, Error>(there)
        });
        let there = there.await.unwrap();
        for unique in shapes().iter().flat_map(|shape| shape.unique) {
            assert!(there.iter().any(|name| name == unique.index), "{}", unique.index);
        }
    }

    /// The columns that the field tables name exist, with those that the engine adds.
    async fn columns_exist(world: World) {
        for shape in shapes() {
            let mut columns: Vec<String> = vec!["rid".into()];
            for field in shape.fields.iter().filter(|field| field.access.column == Column::Own) {
                columns.push(field.column.to_owned());
                if field.access.folded {
                    columns.push(format!("{}_key", field.column));
                }
            }
            columns.extend(shape.owner.map(|owner| owner.column.to_owned()));
            let text = format!("SELECT {} FROM {} t", columns.join(", "), shape.table);
            let read = world.app.store.run("Test", Mode::Long, None, move |tx| tx.query(&text, &[], |_| Ok(())));
            read.await.map_err(|error: Error| format!("{}: {error}", shape.name)).unwrap();
            let relations = shape.relations.iter().map(|relation| {
                format!("SELECT m.{}, m.{} FROM {} m", relation.own, relation.other, relation.table)
            });
            for text in relations {
                let read = world.app.store.run("Test", Mode::Long, None, move |tx| tx.query(&text, &[], |_| Ok(())));
                read.await.map_err(|error: Error| format!("{}: {error}", shape.name)).unwrap();
            }
        }
    }
}
