package kv.http;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class ConnectionLimitTest {
    @Test
    void asManyAsAreWantedWhereDescriptorsArePlenty() {
        ConnectionLimit limit = new ConnectionLimit(10_000, 1 << 20);
        limit.leaveRoomFor(() -> 5_000);
        assertThat(limit.max()).isEqualTo(10_000);
    }

    @Test
    void tablesThatComeLeaveFewerDescriptorsToConnections() {
        AtomicInteger tables = new AtomicInteger(300);
        ConnectionLimit limit = new ConnectionLimit(10_000, 4_096);
        assertThat(limit.max()).as("before there is a store").isEqualTo(3_096);
        limit.leaveRoomFor(tables::get);
        assertThat(limit.max()).isEqualTo(2_496);
        tables.set(1_000);
        limit.look();
        assertThat(limit.max()).isEqualTo(1_096);
        tables.set(0);
        limit.look();
        assertThat(limit.max()).isEqualTo(3_096);
    }

    @Test
    void someAreAlwaysAccepted() {
        assertThat(new ConnectionLimit(10_000, 1_000).max()).isEqualTo(16);
    }

    @Test
    void whereNobodyTellsAsManyAsAreWanted() {
        assertThat(new ConnectionLimit(10_000, Long.MAX_VALUE).max()).isEqualTo(10_000);
    }
}
