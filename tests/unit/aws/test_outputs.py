"""The outputs of a stack with those of its agents."""

from roundsman.aws.outputs import nested_settings, reply_queue_of, with_agents

URL = "https://sqs/1/shop"
OUTPUTS = {
    "SchedulerQueueUrl": f"{URL}-SchedulerQueue",
    "EngineSettings": "DueShards=16,PointInTimeRecovery=true",
    "PaymentBackupAgent": (
        f"payment_backup,shop-F-1,{URL}_PaymentBackupRequestQueue,"
        f"{URL}_PaymentBackupUrgentRequestQueue,{URL}_PaymentBackupReplyQueue,512"
    ),
    "TravelAgent": "the name of a person",
}


def test_each_agent_has_outputs_of_its_own() -> None:
    found = with_agents(OUTPUTS)
    assert {name: found[name] for name in found.keys() - OUTPUTS.keys()} == {
        "PaymentBackupFunctionName": "shop-F-1",
        "PaymentBackupRequestQueueUrl": f"{URL}_PaymentBackupRequestQueue",
        "PaymentBackupUrgentRequestQueueUrl": f"{URL}_PaymentBackupUrgentRequestQueue",
        "PaymentBackupReplyQueueUrl": f"{URL}_PaymentBackupReplyQueue",
    }
    assert reply_queue_of(found, "payment_backup") == f"{URL}_PaymentBackupReplyQueue"


def test_the_settings_of_the_nested_stacks_are_outputs() -> None:
    assert nested_settings(OUTPUTS) == {
        "DueShards": "16",
        "PointInTimeRecovery": "true",
        "PaymentBackupMemory": "512",
    }
    assert nested_settings({}) == {}
