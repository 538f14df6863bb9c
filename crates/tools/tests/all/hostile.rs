//! Tools that attack: each attack is stopped, and shown to succeed, harmlessly bounded, where exactly the layers
//! that stop it are switched off.

mod calls;
mod configuration;
mod files;
mod grants;
mod groups;
mod kernel;
mod network;
mod packages;
mod processes;
mod unasked;

use crate::world::{World, call, isolation, prepare_all};
use selvedge_sandbox::isolation::{Isolation, Layer};
use selvedge_tools::{Catalogue, CatalogueConfig};
use serde_json::{Value, json};
use std::collections::HashMap;

const ATTACKS: &str = include_str!("hostile/attacks.py");
const WRITES: &str = "def run(i):
    exec(i.text)
    return 'done'";

/// A world with the tool, and something to take: a file outside, one in the document's folder, a state folder in it.
fn world() -> World {
    let world = World::new();
    world.write("tools/attack.py", ATTACKS);
    world.write("other/secret.txt", "canary");
    world.write("document/data.txt", "data");
    world.write("document/sub/data.txt", "data");
    world.write("document/.selvedge/selvedge.db", "canary");
    world
}

/// Its tools under this isolation.
async fn under(world: &World, isolation: Isolation) -> Catalogue {
    let mut config = world.config();
    config.isolation = isolation;
    config.hidden = vec![world.path("document/.selvedge")];
    config.limits.processes = Some(48);
    config.limits.memory_bytes = Some(1 << 30);
    config.limits.file_bytes = Some(1 << 20);
    ready(config).await
}

/// The tools of a configuration, ready to be called.
async fn ready(config: CatalogueConfig) -> Catalogue {
    let tools = Catalogue::load(config).await.unwrap();
    prepare_all(&tools).await.unwrap();
    tools
}

/// A world whose tool `writes` runs the code it is given and may write in the document's folder.
fn writer() -> (World, CatalogueConfig) {
    let world = world();
    world.tool("writes", ", 'write_paths': ['.']", WRITES);
    let mut config = world.config();
    config.permissions.allow_write = vec![".".into()];
    (world, config)
}

/// Its tools, without some layers of isolation.
async fn without(world: &World, off: &[Layer]) -> Catalogue {
    under(world, isolation().without(off)).await
}

/// Whether this machine has the layers; where it has not, it says why: `doctor` prints the same words.
async fn machine_has(layers: &[Layer]) -> bool {
    let isolation = isolation();
    let found = isolation.found().await;
    let Some(layer) = layers.iter().find(|layer| !found.holds(**layer)) else { return true };
    let missing =
        found.missing.iter().chain(&found.optional).find(|missing| missing.layer == *layer).unwrap();
    assert!(!missing.why.is_empty());
    eprintln!("not tested here: {layer} is missing: {}", missing.why);
    false
}

async fn attack(tools: &Catalogue, what: &str, arg: &str) -> Value {
    call(tools, "attack", json!({"what": what, "arg": arg})).await.unwrap()
}

/// Attacks of one world under several sets of layers.
struct Arena {
    world: World,
    made: HashMap<Vec<Layer>, Catalogue>,
    /// No isolation at all: what this machine allows anybody.
    plain: Option<Catalogue>,
}

impl Arena {
    fn new() -> Self {
        Self { world: world(), made: HashMap::new(), plain: None }
    }

    async fn try_without(&mut self, off: &[Layer], what: &str, arg: &str) -> Value {
        if !self.made.contains_key(off) {
            let tools = without(&self.world, off).await;
            self.made.insert(off.to_vec(), tools);
        }
        attack(&self.made[off], what, arg).await
    }

    /// With all layers, an attack is stopped, and without each of these sets of them, too.
    async fn stopped(&mut self, what: &str, arg: &str, without: &[&[Layer]]) {
        for off in [&[][..]].iter().chain(without) {
            let got = self.try_without(off, what, arg).await;
            assert_eq!(got, Value::Null, "{what} {arg}, without {off:?}");
        }
    }

    /// Without these layers it succeeds, if this machine allows it to anybody.
    async fn succeeds(&mut self, what: &str, arg: &str, without: &[Layer]) -> Value {
        if self.plain.is_none() {
            self.plain = Some(under(&self.world, Isolation::none()).await);
        }
        let plain = attack(self.plain.as_ref().unwrap(), what, arg).await;
        if plain.is_null() {
            eprintln!("not shown here: {what} {arg} is refused to anybody");
            return plain;
        }
        let got = self.try_without(without, what, arg).await;
        assert_ne!(got, Value::Null, "{what} {arg}, without {without:?}");
        got
    }
}
