"""Tenant onboarding: account, database, domain and approval, then billing, then the users."""

from datetime import timedelta

from roundsman import Compensation, Retry, Step, Undo, Wait, Workflow
from workflows.tenant import Tenant

create_account = Step(
    name="create_account",
    agent="accounts",
    complete_within=timedelta(seconds=30),
    compensation=Compensation(fences_late_performs=True),
)

# These three run at the same time. An officer may need days, so the rest is ready by then.
provision_database = Step(
    name="provision_database",
    agent="databases",
    after=(create_account,),
    complete_within=timedelta(minutes=5),
    compensation=Compensation(fences_late_performs=True),
)
set_up_domain = Step(
    name="set_up_domain",
    agent="dns",
    after=(create_account,),
    complete_within=timedelta(seconds=60),
    compensation=Compensation(fences_late_performs=True),
)
approve_tenant = Step(
    name="approve_tenant",
    agent="compliance",
    after=(create_account,),
    when="input.plan != 'trial'",
    complete_within=timedelta(seconds=30),
    retry=Retry(max_attempts=3),
    compensation=Compensation(fences_late_performs=True),
)

# A billing provider that is down for long delays the tenant, and undoes nothing for two hours.
start_billing = Step(
    name="start_billing",
    agent="billing",
    after=(provision_database, set_up_domain, approve_tenant),
    complete_within=timedelta(seconds=60),
    on_failure=Wait(timedelta(minutes=30), times=4, then=Undo()),
    compensation=Compensation(fences_late_performs=True),
)

# From here on the tenant pays, so a failure is repaired by a person and undoes nothing.
invite_user = Step(
    name="invite_user",
    agent="accounts",
    after=(start_billing,),
    for_each="input.users",
    tolerate=0.25,  # a quarter of the addresses may be mistyped
    complete_within=timedelta(seconds=30),
    compensation=Compensation(fences_late_performs=True),
)
send_welcome = Step(
    name="send_welcome",
    agents=("mail", "mail_backup"),
    after=(invite_user,),
    complete_within=timedelta(seconds=30),
    retry=Retry(max_attempts=5, first_delay=timedelta(seconds=10)),
)

tenant_onboarding = Workflow(
    name="tenant_onboarding",
    input=Tenant,
    steps=(
        create_account,
        provision_database,
        set_up_domain,
        approve_tenant,
        start_billing,
        invite_user,
        send_welcome,
    ),
    complete_within=timedelta(days=21),
    on_failure=Undo(),
    point_of_no_return=start_billing,
    retain_for=timedelta(days=90),
)
