//! Seeding a `PostgreSQL` database by `COPY`.

use std::path::Path;

use tokio_postgres::{Client, NoTls};

use super::{GROUP_COLUMNS, STORE, TABLES, USER_COLUMNS, folded, group_name, sign_in};
use crate::{
    cluster::Cluster,
    fault::{Context as _, Result},
    peers::rows::Cell,
    people,
};

/// Seeds the database of a stopped server.
pub async fn fill(cluster: &Cluster, users: u64) -> Result<()> {
    let client = connect(cluster).await?;
    let store: i64 = client.query_one(STORE, &[]).await.context("the store named default")?.try_get(0)?;
    write(&client, &TABLES, || copy(cluster, store, users)).await
}

/// Adds to a seeded database what people need to sign in; the server's own files are in this folder.
pub async fn fill_sign_in(cluster: &Cluster, files: &Path, users: u64) -> Result<()> {
    let client = connect(cluster).await?;
    let ids = client.query_one(sign_in::STORE_IDS, &[]).await.context("the store named default")?;
    let seed = sign_in::SignInSeed::new([ids.try_get(0)?, ids.try_get(1)?, ids.try_get(2)?], files)?;
    let copy = || {
        for table in &sign_in::TABLES {
            cluster.copy_in(&format!("{} ({})", table.name, table.columns), |out| {
                for number in 0..users {
                    let cells: Vec<String> = (table.row)(&seed, number)?.iter().map(Cell::to_copy).collect();
                    writeln!(out, "{}", cells.join("\t"))?;
                }
                Ok(())
            })?;
        }
        Ok(())
    };
    write(&client, &sign_in::TABLES.map(|table| table.name), copy).await
}

async fn connect(cluster: &Cluster) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(&cluster.url(), NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Writes to tables; their indexes are made afterwards.
async fn write(client: &Client, tables: &[&str], rows: impl FnOnce() -> Result<()>) -> Result<()> {
    let indexes = client
        .query(
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = ANY ($1) \
             AND indexname::regclass NOT IN (SELECT conindid FROM pg_constraint)",
            &[&tables],
        )
        .await?;
    for row in &indexes {
        client.batch_execute(&format!("DROP INDEX {}", row.try_get::<_, &str>(0)?)).await?;
    }
    rows()?;
    client.batch_execute("SET maintenance_work_mem = '256MB'").await?;
    for row in &indexes {
        client.batch_execute(row.try_get(1)?).await?;
    }
    let numbered = "SELECT table_name::text FROM information_schema.columns \
        WHERE table_schema = current_schema() AND table_name = ANY ($1) AND column_name = 'rid'";
    for row in client.query(numbered, &[&tables]).await? {
        let table: &str = row.try_get(0)?;
        let next = format!("SELECT setval(pg_get_serial_sequence('{table}', 'rid'), max(rid)) FROM {table}");
        client.batch_execute(&next).await?;
    }
    client.batch_execute("VACUUM ANALYZE").await?;
    client.batch_execute("CHECKPOINT").await?;
    Ok(())
}

fn copy(cluster: &Cluster, store: i64, users: u64) -> Result<()> {
    cluster.copy_in(&format!("user_account ({USER_COLUMNS})"), |out| {
        for number in 0..users {
            let person = people::person(number);
            let (first, last) = (folded(person.first_name), folded(&person.last_name));
            writeln!(
                out,
                "{}\t{store}\t{}\t{}\t{}\t{}\t{first}\t{}\t{last}\t{}\t{}\tt\t{}\tf\ten-GB\tt\tt\tf\t0\t0\tf\tt\tf\tf\t{}",
                number + 1,
                person.id,
                person.login_name,
                folded(&person.login_name),
                person.first_name,
                person.last_name,
                person.email_address,
                folded(&person.email_address),
                person.phone_number,
                person.concurrency_token,
            )?;
        }
        Ok(())
    })?;
    cluster.copy_in(&format!("user_group ({GROUP_COLUMNS})"), |out| {
        for number in 0..people::groups(users) {
            let (id, name) = (people::group_id(number), group_name(number));
            writeln!(out, "{}\t{store}\t{id}\t{name}\t{}\tg{number}", number + 1, folded(&name))?;
        }
        Ok(())
    })?;
    cluster.copy_in("group_member (group_rid, user_rid)", |out| {
        for (group, user) in people::memberships(users) {
            writeln!(out, "{}\t{}", group + 1, user + 1)?;
        }
        Ok(())
    })
}
