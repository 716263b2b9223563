//! A test: one command, or several with ratios.

use std::sync::Arc;

use super::random::Random;
use super::template::Template;

/// What is sent in one test.
#[derive(Clone, Debug)]
pub struct Workload {
    /// As the report calls it.
    pub name: String,
    /// One at least.
    pub commands: Arc<[Weighted]>,
    /// Sum of the weights.
    total: u64,
    /// What each target gets before each turn of this test: a load, and how many requests of it.
    pub before: Vec<(Workload, u64)>,
}

/// A command of a mix.
#[derive(Clone, Debug)]
pub struct Weighted {
    /// Its share, relative to the others'.
    pub weight: u64,
    /// The command.
    pub template: Template,
}

impl Workload {
    /// A test of one command.
    pub fn one(name: impl Into<String>, template: Template) -> Self {
        Self::mix(name, vec![Weighted { weight: 1, template }])
    }

    /// A test of several, one at least, with weights above 0.
    pub fn mix(name: impl Into<String>, commands: Vec<Weighted>) -> Self {
        let total = commands.iter().map(|command| command.weight).sum();
        Self { name: name.into(), commands: commands.into(), total, before: Vec::new() }
    }

    /// The same with something to be sent before each turn.
    pub fn after(mut self, load: Workload, requests: u64) -> Self {
        self.before.push((load, requests));
        self
    }

    /// The position of the next command.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> usize {
        if self.commands.len() == 1 {
            return 0;
        }
        let mut left = random.below(self.total);
        for (i, command) in self.commands.iter().enumerate() {
            if left < command.weight {
                return i;
            }
            left -= command.weight;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_keeps_its_ratios() {
        let command = |weight| Weighted { weight, template: Template::raw(b"PING\r\n") };
        let mix = Workload::mix("mix", vec![command(90), command(10)]);
        let mut random = Random::new(1);
        let second = (0..10_000).filter(|_| mix.draw(&mut random) == 1).count();
        assert!((850..1150).contains(&second), "{second} of 10,000");
    }
}
