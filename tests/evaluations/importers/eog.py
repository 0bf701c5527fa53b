"""Small made-up result files in the shape of EnterpriseOps-Gym's harness, and in that of a third party's runner."""

import json
from typing import Any

Checks = tuple[bool, ...]


def run(number: int, checks: Checks, *, turns: int = 2, answered: str = "model-x-2026-05-01") -> dict[str, Any]:
    passed = sum(checks)
    message = {"type": "ai_message", "content": "…", "response_metadata": {"model_name": answered}, "tool_calls": []}
    return {
        "run_number": number,
        "started_at": f"2026-06-10T10:0{number}:00.250000+00:00",
        "execution_time_ms": 1500,
        "model_response": "done",
        "conversation_flow": [
            {"type": "system_message", "content": "policy"},
            {"type": "user_message", "content": "task"},
            *([message, {"type": "tool_result", "tool_name": "t", "result": {"success": True}, "gym_server": "g"}] * turns),
        ],
        "tools_used": ["t"],
        "tool_results": [],
        "verification_results": {
            f"check {index}": {"passed": ok, "expected": 1, "actual": int(ok), "comparison_type": "equals", "query": "…"}
            for index, ok in enumerate(checks)
        },
        "verification_summary": {
            "total": len(checks),
            "passed": passed,
            "failed": len(checks) - passed,
            "pass_rate": passed / len(checks) if checks else 0.0,
        },
        "overall_success": all(checks),
    }


def failed(number: int) -> dict[str, Any]:
    return {"run_number": number, "error": "503 Service Unavailable", "overall_success": False}


def result(*runs: dict[str, Any], model: str = "provider/model-x") -> dict[str, Any]:
    good = [each for each in runs if each.get("overall_success")]
    return {
        "benchmark_config": {
            "model": model,
            "number_of_runs": len(runs),
            "user_prompt": "task",
            "gym_servers": [{"name": "g", "url": "http://localhost", "seed_database_file": "", "uses_cloning": True}],
            "total_gyms": 1,
            "total_tools_available": 12,
        },
        "runs": list(runs),
        "statistics": {
            "total_runs": len(runs),
            "successful_runs": len(good),
            "overall_success_rate": len(good) / len(runs) if runs else 0,
            "pass_at_1": 1.0 if runs and runs[0].get("overall_success") else 0.0,
            "mean_execution_time_ms": 1500.0,
            "tool_usage": {"t": 1},
        },
    }


def path(task: str, *, domain: str = "hr", mode: str = "oracle", folder: int = 1, orchestrator: str = "react") -> str:
    return f"results/{orchestrator}/model-x/{domain}/{mode}/run_{folder}/results_{mode}__{domain}__{task}.json"


def runner_file(*, span: str = "2-9", total: int = 8, tasks: tuple[Checks, ...] = ((True, True), (True,))) -> dict[str, Any]:
    passed = sum(sum(checks) for checks in tasks)
    checks = sum(len(each) for each in tasks)
    good = sum(all(each) for each in tasks)
    return {
        "domain": "teams",
        "range": span,
        "timestamp": "2026-04-08T18-15-26",
        "tasks_run": len(tasks),
        "tasks_passed": good,
        "tasks_total": total,
        "verifiers_passed": passed,
        "verifiers_failed": checks - passed,
        "verifiers_total": checks,
        "pass_rate": f"{passed / checks * 100:.1f}%",
        "task_pass_rate": f"{good / len(tasks) * 100:.1f}%",
        "results": [
            {
                "index": index,
                "task_id": f"task_{index}",
                "domain": "teams",
                "user_prompt": "…",
                "passed": sum(each),
                "failed": len(each) - sum(each),
                "total": len(each),
                "verifiers": [{"name": f"v{at}", "passed": ok, "expected": 1, "actual": int(ok)} for at, ok in enumerate(each)],
                "duration_s": 100.5,
            }
            for index, each in enumerate(tasks, 2)
        ],
    }


def as_bytes(value: Any) -> bytes:
    return json.dumps(value, indent=2).encode()
