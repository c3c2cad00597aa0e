"""Which scope each operation needs. An operation that is not in the table needs `admin`, and fails a test.

PUBLIC   whether the service is up: what a load balancer asks, which has no key
ingest   sends documents
judge    judges them, and sees what waits for a judgement
read     looks, changes nothing
manage   changes topics, what is known of them, where they come from and go to, and jobs
admin    makes and revokes keys
"""

from typing import Literal

from service.schemas.access import Scope

PUBLIC: Literal["public"] = "public"
OPERATIONS: dict[str, Scope | Literal["public"]] = {
    "healthz": PUBLIC,
    "readyz": PUBLIC,
    "scrape": "read",
    "home": "read",
    # topics
    "create_topic": "manage",
    "list_topics": "read",
    "read_topic": "read",
    "change_topic": "manage",
    "delete_topic": "manage",
    "list_versions": "read",
    "restore_version": "manage",
    "read_model": "read",
    "replace_model": "manage",
    "export_topic": "read",
    "import_topic": "manage",
    "preview": "read",
    # documents and judgements
    "classify": "ingest",
    "feedback": "judge",
    "search_documents": "read",
    "search_atom": "read",
    "search_json_feed": "read",
    "show_document": "read",
    "list_judgements": "read",
    "withdraw_judgement": "judge",
    "review": "judge",
    "skip": "judge",
    "add_known": "judge",
    "list_known": "read",
    "delete_known": "judge",
    # what a topic lets through
    "listen": "read",
    "list_passed": "read",
    "list_ranked": "read",
    "topic_atom": "read",
    "topic_json_feed": "read",
    "flow": "read",
    "put_routes": "manage",
    "list_routes": "manage",  # the address of a chat is its secret
    "list_dead": "read",
    "replay": "manage",
    # how topics do
    "pooled_recall": "read",
    "read_metrics": "read",
    "read_overview": "read",
    "read_curve": "read",
    "read_tradeoff": "read",
    # jobs
    "submit_job": "manage",
    "list_jobs": "read",
    "read_job": "read",
    "cancel_job": "manage",
    # sources: fetching from an address of the caller's choice is managing, even if nothing is stored
    "create_source": "manage",
    "list_sources": "read",
    "read_source": "read",
    "change_source": "manage",
    "delete_source": "manage",
    "try_source": "manage",
    "poll_source": "manage",
    "import_sources": "manage",
    "export_sources": "read",
    # keys
    "issue_key": "admin",
    "list_keys": "admin",
    "revoke_key": "admin",
}

PAGES: dict[str, Scope | Literal["public"]] = {  # of the console
    "page_access_enter": PUBLIC,
    "page_access_leave": PUBLIC,
    "page_access_sign": PUBLIC,
    "page_manual_docs": PUBLIC,
    "page_start_ways_in": "read",
    "page_start_begin": "manage",
    "page_search_find": "read",
    "page_search_judge": "judge",
    "page_sources_list_sources": "read",
    "page_sources_add": "manage",
    "page_sources_act": "manage",
    "page_operation_operation": "read",
    "page_operation_now": "read",
    "page_inbox_items": "read",
    "page_inbox_text": "read",
    "page_inbox_judge": "judge",
    "page_inbox_withdraw": "judge",
    "page_topics_list_topics": "read",
    "page_topics_volume": "read",
    "page_topics_preview": "read",
    "page_topics_create": "manage",
    "page_topic_show": "read",
    "page_topic_show_charts": "read",
    "page_topic_show_jobs": "read",
    "page_topic_preview": "read",
    "page_topic_change": "manage",
    "page_topic_change_terms": "manage",
    "page_topic_restore": "manage",
    "page_topic_withdraw": "judge",
    "page_topic_start_job": "manage",
    "page_topic_replay": "manage",
    "page_topic_delete": "manage",
}


def scope_of(operation: str) -> Scope | Literal["public"]:
    return (OPERATIONS | PAGES).get(operation, "admin")
