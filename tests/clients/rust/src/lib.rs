//! Tells what a client could do: a line for the client, then one for each feature: its name, `ok` or `FAILED`, and why.

use std::error::Error;
use std::fmt::Debug;

/// What a check found.
pub type Outcome = Result<(), Box<dyn Error>>;

/// Prints the line of the client.
pub fn begin(client: &str) {
    println!("client\t{client}");
}

/// Prints the line of a feature; whether it works.
pub fn tell(feature: &str, outcome: &Outcome) -> bool {
    match outcome {
        Ok(()) => println!("{feature}\tok"),
        Err(error) => {
            let reason = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
            println!("{feature}\tFAILED\t{reason}");
        }
    }
    outcome.is_ok()
}

/// An error unless both are the same.
pub fn same<T: PartialEq + Debug>(found: T, wanted: T) -> Outcome {
    if found == wanted { Ok(()) } else { Err(format!("found {found:?}, wanted {wanted:?}").into()) }
}

/// HOST and PORT of the command line.
pub fn address() -> (String, u16) {
    let mut args = std::env::args().skip(1);
    let host = args.next().expect("HOST PORT");
    (host, args.next().and_then(|port| port.parse().ok()).expect("HOST PORT"))
}
