//! A server for checks from outside. It expects the identity providers with fixed public addresses, such as Google, at the address
//! in the variable `PUBLIC_PROVIDERS`. The program `chancery` has no such setting.

use std::{
    env,
    error::Error,
    io::{Write as _, stdout},
    time::Duration,
};

use chancery::{Arguments, Config, Log, Server};
use chancery_testkit::one_address;
use clap::Parser as _;
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut config = Config::read(&Arguments::parse().config)?;
    config.provider_addresses = one_address(&env::var("PUBLIC_PROVIDERS")?);
    Log::start(&config.log)?;
    let outcome: Result<(), Box<dyn Error>> = Runtime::new()?.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let server = Server::start(&config).await?;
        let (url, setup) = (&server.public_url, server.root_access.setup.as_deref().unwrap_or_default());
        writeln!(stdout(), "Chancery listens on {url}\n  first person    {url}{setup}")?;
        let stop = async move {
            terminate.recv().await;
            Duration::ZERO
        };
        server.run(stop).await?;
        Ok(())
    });
    Log::finish();
    outcome
}
