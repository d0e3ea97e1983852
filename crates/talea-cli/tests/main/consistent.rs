//! What several outputs of a command, or several commands, say of one thing is the same.

use crate::support::{folder, run, within, write};

/// Of what comes from outside faster than declared some waits for its guard, far more is dropped, and what was let through is counted everywhere.
#[test]
fn tasks_and_operations_count_the_same_jobs_where_a_guard_drops_most() {
    let folder = folder();
    let text = "[system]\nname = \"hard\"\n[[task]]\nname = \"stop\"\ntrigger = \"external\"\nseparation = \"7ms\"\n\
        arrivals = { periodic = \"2ms\", jitter = \"0ms\" }\ndeadline = \"2s\"\ncriticality = \"high\"\nwcet = \"1ms\"\n";
    let (file, out) = (write(&folder, "hard.toml", text), within(&folder, "out"));
    let done = run(&["sim", &file, "--for", "3s", "--out", &out, "--json"]).exits(1);
    assert!(done.stderr.contains("943 jobs were skipped or aborted"), "{}", done.stderr);
    let json = &done.json()["report"];
    let task = &json["tasks"][0];
    // Those that the guard holds at the end have arrived.
    let counts = ["offered", "released", "completed", "met", "missed", "skipped", "unfinished"]
        .map(|key| task[key].as_u64());
    assert_eq!(counts, [1500, 429 + 128, 429, 429, 0, 943, 128].map(Some), "{task}");
    let operation = ["released", "completed"].map(|key| json["operations"][0][key].as_u64());
    assert_eq!(operation, [429, 429].map(Some));
    let explained =
        run(&["trace", "explain", &within(&folder, "out/trace.talea"), "--task", "stop", "--job", "200"]);
    assert!(explained.exits(0).stdout.contains("stop #200: met"));
}

#[test]
fn who_is_refused_is_not_told_to_be_admitted() {
    let folder = folder();
    let thread = |name: &str, budget: &str| {
        format!(
            "[[thread]]\nname = \"{name}\"\nunder = [{{ scheduler = \"R\", guarantee = \"RESBS {budget} 10ms\" }}]\n\
             work = {{ burst = \"{budget}\", period = \"10ms\" }}\n"
        )
    };
    let text =
        "[system]\nname = \"rk\"\n[[scheduler]]\nname = \"R\"\nkind = \"resource-kernel\"\n".to_owned();
    let file = write(&folder, "rk.toml", &(text + &thread("t", "6ms") + &thread("u", "3ms")));
    let done = run(&["check", &file]).exits(1);
    let row = |name: &str| done.stdout.lines().find(|line| line.contains(name)).unwrap_or_default();
    assert!(row("─ t ").contains("[2]") && row("─ u ").contains("not admitted"), "{}", done.stdout);
    assert!(!row("─ u ").contains("[2]") && done.stdout.contains("refuses \"u\""), "{}", done.stdout);
}

#[test]
fn a_filter_by_a_priority_that_nobody_states_and_a_chain_that_nothing_comes_through_are_told() {
    let folder = folder();
    let text = "[system]\nname = \"told\"\n[[channel]]\nname = \"c\"\nqos = { Priority = 3 }\n\
        [[task]]\nname = \"a\"\nperiod = \"10ms\"\nwcet = \"1ms\"\nevents = [{ channel = \"c\", type = \"D/a\" }]\n\
        [[task]]\nname = \"b\"\ndeadline = \"20ms\"\nwcet = \"1ms\"\n\
        subscription = { channel = \"c\", filter = \"$priority == 3\" }\n\
        [[task]]\nname = \"p\"\nperiod = \"10ms\"\nphase = \"5s\"\nwcet = \"1ms\"\noutputs = [{ name = \"o\" }]\n\
        [[task]]\nname = \"r\"\nperiod = \"10ms\"\nwcet = \"1ms\"\ninputs = [{ name = \"i\", from = \"p.o\" }]\n\
        [[chain]]\nname = \"never\"\npath = [\"p\", \"r\"]\n";
    let file = write(&folder, "told.toml", text);
    let done = run(&["sim", &file, "--for", "100ms"]).exits(0);
    assert!(done.stderr.contains("names $priority, which none of its events"), "{}", done.stderr);
    let told = "never: its last operation completed 10 times, and never with a sample";
    assert!(done.words().contains(told), "{}", done.stdout);
    let stated = text.replace("type = \"D/a\"", "type = \"D/a\", priority = 3");
    let done = run(&["sim", &write(&folder, "stated.toml", &stated), "--for", "100ms"]).exits(0);
    assert!(!done.stderr.contains("$priority"), "{}", done.stderr);
    // Fields of headers are programs' business; those that the service knows have the same places spelled out.
    let spelled_out = |name: &str| {
        let filter = format!("\"$.header.variable_header({name}) == 3\"");
        let file = write(&folder, "spelled.toml", &stated.replace("\"$priority == 3\"", &filter));
        run(&["sim", &file, "--for", "100ms"]).exits(0)
    };
    let done = spelled_out("mission");
    let told = "names $.header.variable_header(mission), which none of its events state";
    assert!(done.stderr.contains(told) && done.stderr.contains("programs may state it"), "{}", done.stderr);
    let declared = stated.replace("priority = 3", "header_fields = { mission = 3 }");
    let filter = "\"$.header.variable_header(mission) == 3\"";
    let file = write(&folder, "declared.toml", &declared.replace("\"$priority == 3\"", filter));
    let done = run(&["sim", &file, "--for", "100ms"]).exits(0);
    assert!(
        !done.stderr.contains("mission") && done.words().contains("b c 10 10"),
        "{}{}",
        done.stderr,
        done.stdout
    );
    let done = spelled_out("Priority");
    assert!(!done.stderr.contains("which none of its events"), "{}", done.stderr);
}
