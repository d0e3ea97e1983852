//! Wrong input: every problem at once, at its place, with a remedy.

use crate::files::{accepted, rejected};
use talea_interchange::{Format, import};
use talea_model::Severity;

/// `line:column: message`, and what the remedy contains.
fn problems(format: Format, text: &str, expected: &[(&str, &str)]) {
    let rejected = rejected(format, text);
    let found: Vec<String> = rejected
        .list()
        .iter()
        .map(|problem| {
            let place =
                problem.location.as_ref().map_or("-".into(), |at| format!("{}:{}", at.line, at.column));
            format!("{place}: {}", problem.message)
        })
        .collect();
    let messages: Vec<&str> = expected.iter().map(|(message, _)| *message).collect();
    assert_eq!(found, messages);
    for (problem, (_, remedy)) in rejected.list().iter().zip(expected) {
        assert!(problem.remedy.contains(remedy), "{remedy:?} is not in {:?}", problem.remedy);
    }
}

#[test]
fn rt_app_values() {
    let text = "{ \"tasks\" : {\n\
                \"a\" : { \"run\" : 1.5, \"timer\" : { \"perod\" : 10 } },\n\
                \"b\" : { \"run\" : -5, \"policy\" : \"SCHED_FIF0\" },\n\
                \"c\" : { \"instance\" : 10001, \"cpus\" : [0, 1024], \"sleep\" : \"1\" },\n\
                \"d\" : 7, \"e\" : { \"run\" : 4294967296, \"cpus\" : [], \"timer\" : 5 },\n\
                \"f\" : { \"exec\" : 5, \"suspend\" }, \"g\" : { \"run\", \"resume\" : 3 }, \"h\" : { \"run\" : NaN }\n\
                } }";
    problems(
        Format::RtApp,
        text,
        &[
            ("2:17: task \"a\": \"run\" is \"1.5\", not a whole number", "whole numbers"),
            ("2:34: task \"a\": rt-app ignores \"perod\"", "\"period\""),
            ("3:17: task \"b\": \"run\" is \"-5\", out of range", "0 to 2147483647"),
            ("3:21: task \"b\": \"SCHED_FIF0\" is no scheduling policy", "\"SCHED_FIFO\""),
            ("4:22: task \"c\": \"instance\" is \"10001\", out of range", "0 to 10000"),
            ("4:42: task \"c\": an element of \"cpus\" is no processor number", "0 to 1023"),
            ("4:59: task \"c\": \"sleep\" is a text, not a whole number", "\"sleep\" : 1"),
            ("5:7: task \"d\": \"d\" is a number, not an object", "\"run\""),
            ("5:26: task \"e\": \"run\" is \"4294967296\", out of range", "0 to 2147483647"),
            ("5:47: task \"e\": \"cpus\" is empty", "leave it out"),
            ("5:61: task \"e\": \"timer\" is a number, not an object", "\"unique\""),
            ("6:1: task \"f\" has an \"exec\" and no \"period\"", "\"period\" : 10000"),
            ("6:42: task \"g\": \"run\" has no value", "\"run\" : 1"),
            ("6:60: task \"g\": \"resume\" is a number, not a text", "\"name\""),
            ("6:81: task \"h\": \"run\" is \"NaN\", not a whole number", "whole numbers"),
        ],
    );
}

#[test]
fn rt_app_files_without_tasks() {
    problems(Format::RtApp, "{}", &[("1:1: the file has no \"tasks\"", "\"tasks\" : {")]);
    let nobody = "{ \"task\" : {}, \"tasks\" : { \"a\" : { \"suspend\", \"run\" : 5 } } }";
    problems(
        Format::RtApp,
        nobody,
        &[
            ("1:3: the file: rt-app ignores \"task\"", "\"tasks\""),
            ("1:16: no thread of this file is released by time, so there is no task to import", "timer"),
        ],
    );
}

#[test]
fn simso_values() {
    let text = "<simulation etm=\"wect\" cycles_per_ms=\"1000\">\n\
                <processors><processor id=\"1\" cs_overhead=\"-1\"/></processors><tasks>\n\
                <task name=\"A\" id=\"1\" perod=\"10\" deadline=\"nan\" WCET=\"-1\"/>\n\
                <task name=\"B\" id=\"x\" task_type=\"Periodical\" period=\"1e400\" deadline=\"1,5\" WCET=\"1\"/>\n\
                <task id=\"2\" period=\"5\" deadline=\"5\" WCET=\"1\" list_activation_dates=\"1, z\"/>\n\
                </tasks></simulation>";
    problems(
        Format::SimSo,
        text,
        &[
            ("1:13: the execution time model \"wect\" is unknown", "\"wcet\""),
            ("2:31: processor \"\": the cs_overhead \"-1\" is negative", "cycles"),
            ("3:2: task \"A\" has no period", "period=\"10.0\""),
            ("3:23: task \"A\": SimSo ignores \"perod\"", "\"period\""),
            ("3:34: task \"A\": the deadline \"nan\" is not a finite number", "milliseconds"),
            ("3:49: task \"A\": the WCET \"-1\" is negative", "milliseconds"),
            ("4:16: task \"B\": the id \"x\" is not a whole number", "such as 1"),
            ("4:23: task \"B\": the task_type \"Periodical\" is unknown", "\"Periodic\""),
            (
                "4:46: task \"B\": the period \"1e400\" is longer than 292 years, the range of all times",
                "milliseconds",
            ),
            ("4:61: task \"B\": the deadline \"1,5\" is not a decimal number", "2.5"),
            ("5:2: task \"\" has no name", "name=\"T1\""),
            ("5:47: task \"\": the list_activation_dates \" z\" is not a decimal number", "milliseconds"),
        ],
    );
}

#[test]
fn simso_structure() {
    let task = |id: u8| format!("<task name=\"a\" id=\"{id}\" period=\"5\" deadline=\"5\" WCET=\"1\"/>");
    let same = format!("<simulation><tasks>{}\n{}</tasks></simulation>", task(1), task(1));
    problems(Format::SimSo, &same, &[("2:2: task \"a\": the id 1 exists already", "own id")]);
    problems(
        Format::SimSo,
        "<simulation><tasks/></simulation>",
        &[("1:1: the file has no task that is released by time", "<task>")],
    );
    problems(Format::SimSo, "<svg/>", &[("1:2: the file is a \"svg\", not a simulation", "SimSo")]);
    let zero = "<simulation><tasks><task name=\"a\" id=\"1\" period=\"0\" deadline=\"5\" WCET=\"0\"/></tasks></simulation>";
    problems(
        Format::SimSo,
        zero,
        &[
            ("1:21: the period of task \"a\" is zero", "more than zero"),
            ("1:21: the wcet of task \"a\" is zero", "more than zero"),
        ],
    );
    let broken = import(Format::SimSo, "x", "<simulation>\n <tasks>\n</simulation>").expect_err("broken");
    let location = broken.list()[0].location.clone().expect("a place");
    assert_eq!(location.line, 3);
    let entity = "<!DOCTYPE a [<!ENTITY b \"c\">]><simulation>&b;</simulation>";
    assert!(rejected(Format::SimSo, entity).to_string().contains("not well-formed"));
}

#[test]
fn table_headers() {
    problems(
        Format::Csv,
        "task,perod_ms,wcet,colour,node_ms,wcet,deadline_days\na,1,1,1,1,1,1\n",
        &[
            ("1:6: unknown column \"perod_ms\"", "\"period_ms\""),
            ("1:20: unknown column \"colour\"", "the columns are task, period"),
            ("1:27: the column \"node\" holds no times", "write \"node\""),
            ("1:35: the column \"wcet\" is there twice", "remove"),
            ("1:40: the column \"deadline_days\" names an unknown unit", "\"deadline_ms\""),
        ],
    );
    problems(Format::Csv, "task,wcet\na,1ms\n", &[("1:1: the table has no column \"period\"", "add it")]);
    problems(
        Format::Csv,
        "task,period,wcet\n",
        &[("1:1: the table has no row below the first", "add a row")],
    );
}

#[test]
fn table_cells() {
    problems(
        Format::Csv,
        "task,period_ms,wcet,subtask,node,criticality,importance,overrun,exec,cpus\n\
         a,10,1,x,n,5,,,,0\n\
         a,20,2ms,y,n,,1.5,skip,unifrm 1ms 2ms,1\n\
         b,-1,3ms,,,,,,uniform 1ms,0 x\n\
         ,10,1ms\n\
         c,1,,p,n\n\
         c,,1ms,p,n\n\
         d,10,1ms,,n,,,,,,surplus\n",
        &[
            (
                "2:6: subtask \"x\" of task \"a\": the wcet: \"1\" has no unit; write \"1ms\", or one of ns, us, ms, s, min, h",
                "wcet_ms",
            ),
            ("2:12: subtask \"x\" of task \"a\": the criticality \"5\" is unknown", "0 to 4"),
            (
                "3:3: subtask \"y\" of task \"a\": the period is 20ms here and 10ms on an earlier row of the task",
                "one period",
            ),
            (
                "3:15: subtask \"y\" of task \"a\": the importance \"1.5\" is not a whole number of 32 bits",
                "-3",
            ),
            ("3:19: subtask \"y\" of task \"a\": the overrun \"skip\" is unknown", "skip-next"),
            ("3:24: subtask \"y\" of task \"a\": the exec \"unifrm\" is unknown", "\"uniform\""),
            (
                "3:39: subtask \"y\" of task \"a\": node \"n\" has other cpus on an earlier row: 0",
                "same cpus",
            ),
            ("4:3: task \"b\": the period \"-1\" is negative", "number of ms"),
            ("4:15: task \"b\": a uniform exec has two times, not 1", "uniform 1ms 4ms"),
            ("4:27: task \"b\": the cpus \"0 x\" are not processor numbers", "0 to 1023"),
            ("5:1: task \"\": the task is missing", "column \"task\""),
            ("6:5: subtask \"p\" of task \"c\": the wcet is missing", "column \"wcet\""),
            ("7:8: subtask \"p\" of task \"c\": stands in the table twice", "own name"),
            ("8:18: the row has 11 cells, the first row 10", "remove a cell"),
        ],
    );
}

#[test]
fn table_relations() {
    problems(
        Format::Csv,
        "task,period,wcet,jitter,subtask,node,after\n\
         a b,10ms,1ms,,,n,\n\
         c,10ms,1ms,,p,n,q\n\
         c,,1ms,,q,n,p\n\
         d,10ms,1ms,10ms,,n,\n",
        &[
            ("2:1: task name \"a b\" contains ' '", "\"a-b\""),
            ("3:17: the subtasks of task \"c\" wait for each other: p, q, p", "[] starts"),
            ("5:1: task \"d\": the jitter 10ms is not shorter than the period 10ms", "shorter"),
        ],
    );
    problems(
        Format::Csv,
        "task,period,wcet,subtask,node,after\na,1s,1ms,left,n,\na,,1ms,right,m,lft\nb,1s,1ms,,,\n",
        &[
            (
                "3:16: subtask \"right\" of task \"a\" is after \"lft\", which its task does not have",
                "\"left\"",
            ),
            ("4:1: subtask \"b\" does not say on which node it runs", "\"node\""),
        ],
    );
    problems(Format::Csv, "task,period,wcet\na,,1ms\n", &[("2:1: task \"a\" has no period", "\"period\"")]);
}

#[test]
fn very_many_problems_are_counted() {
    let text = format!("task,period,wcet\n{}", "a,x,y\n".repeat(3000));
    let rejected = rejected(Format::Csv, &text);
    assert_eq!(rejected.list().len(), 1001);
    let last = rejected.list().last().expect("many");
    assert_eq!(last.severity, Severity::Error);
    assert!(last.message.starts_with("and 7"), "{}", last.message);
    accepted(Format::Csv, "task,period,wcet\na,1s,1ms\n");
}
